"""Aligned jobs, and random histories whose own rows say what is consistent."""
