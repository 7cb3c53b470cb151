"""Scripts as users write them, and the way of their events to a store."""
