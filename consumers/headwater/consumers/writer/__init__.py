"""The writer: reads events from the bus and writes their rows into the store.

record_reader          maps records to rows, or to dead letters
plain_pipeline         poll, map, merge: the reference, and the pipeline for SQLite
coordinated            several connections at once
routes, routed_pipeline  several stores, chosen by catalog
lineage_meta_pipeline  stores that implement only `lineage.api.LineageMeta`
runner                 runs a pipeline, waits for outages, and stops in order
known_rows             rows that the store has already
bus_gaps               reports records that the bus lost
metrics, reporting     what probes and Prometheus ask
"""
