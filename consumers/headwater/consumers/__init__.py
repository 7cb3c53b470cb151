"""What happens with events from the bus: the writer, the Spark pipeline, replay and dead letters.

sources                   a bus, read by a consumer group
writer                    from a source into the store
archive                   from a source into a Delta table
retrying                  retries with backoff
health_server, metrics    what probes and Prometheus ask
"""
