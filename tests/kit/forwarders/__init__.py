"""Targets that fail as a test says, forwarders in processes of their own, and rounds of faults around them."""
