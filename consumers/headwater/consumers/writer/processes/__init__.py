"""The pipeline in several processes: some read events, others write rows, and this one keeps order.

Its design follows Hudi's RFC-24. The runner polls the bus; each mini-batch is one instant, whose events are shared out
to reading processes. They map the events and pack their rows by buckets. Each bucket has a process that alone writes
its keys. When all buckets have acknowledged an instant, it is completed, with its offsets. Where Hudi rolls back, rows
are simply written again here, which changes nothing.

process_pipeline   has instants read, flushed and completed
instants           what belongs to an instant
timeline           the instants, as the store has them
slice_reader       in a reading process: events to packed rows
bucket_writer      in a bucket's process: packed rows into the store
worker_process     starts a process and calls it
worker             what such a process runs
"""
