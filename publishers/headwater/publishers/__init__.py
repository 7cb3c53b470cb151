"""Events to a bus: one file per technology."""
