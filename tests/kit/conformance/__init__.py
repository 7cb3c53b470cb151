"""Scenarios of the conformance suite: events that say exactly what is true, and runs on a real Spark."""
