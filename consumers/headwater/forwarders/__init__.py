"""Events to other metadata systems: one file per system."""
