"""The writer: reads events from the bus and writes their rows into the store.

runner                 polls mini-batches, waits for outages, begins anew, and stops in order
pipeline               what becomes of a mini-batch, in one process or in several
store_pipeline         one process: into one store, or into several, chosen by catalog
processes              several processes
lineage_meta_pipeline  into a store that implements only `lineage.api.LineageMeta`
record_reader          maps records to rows, or to dead letters
routes                 which stores an event goes to
known_rows             rows that the store has already
offsets                what is read and recorded of the bus
metrics                what probes and Prometheus ask
"""
