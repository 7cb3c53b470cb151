"""The coordinated pipeline: several processes read events and write rows, and one keeps order.

Its design follows Hudi's RFC-24. The coordinator polls the bus, and hands each batch to a reading process as one
instant. The reading process maps the events and packs their rows by buckets. Each bucket has a process that alone
writes its keys. When all buckets have acknowledged an instant, the coordinator completes it, with its offsets. Where
Hudi rolls back, rows are simply written again here, which changes nothing.

coordinator        polls, forms instants, and begins anew after a failure
instant_processor  has instants read, flushed and completed
instants           what belongs to an instant
timeline           the instants, as the store has them
slice_reader       in a reading process: events to packed rows
bucket_writer      in a bucket's process: packed rows into the store
worker_process     starts a process and calls it
worker             what such a process runs
"""

from headwater.consumers.writer.coordinated.coordinator import Coordinator, CoordinatorLimits

__all__ = ["Coordinator", "CoordinatorLimits"]
