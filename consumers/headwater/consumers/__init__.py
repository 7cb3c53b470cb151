"""The bus to its effects: the writer, the Spark pipeline, replay and dead letters."""
