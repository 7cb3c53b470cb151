"""What happens with events from the bus: the writer, the Spark pipeline, replay and dead letters."""
