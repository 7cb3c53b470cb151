"""Listeners that a test makes up, and drivers with a bus as processes that are killed."""
