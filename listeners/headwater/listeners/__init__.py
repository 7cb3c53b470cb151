"""Spark to events: what a PySpark driver does becomes typed events on the listener bus."""
