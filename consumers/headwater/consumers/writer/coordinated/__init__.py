"""The coordinated pipeline: several connections write rows at once, and offsets follow.

Its design follows Hudi's RFC-24: a coordinator with a timeline, an assigner that distributes rows to buckets by key,
and writers that flush a bucket each. Where Hudi rolls back, rows are simply written again here, which changes nothing.

coordinator    polls, maps, and completes instants
limits         when buckets are flushed, how much memory is used, and splitting of batches
buckets        rows that wait for an acknowledgement, and the assigner
bucket_writer  flushes a bucket on a thread with a connection of its own
connections    connections that can be aborted
instants       what belongs to an instant
timeline       the instants, as the store has them
"""

from headwater.consumers.writer.coordinated.connections import StoreConnection
from headwater.consumers.writer.coordinated.coordinator import Coordinator
from headwater.consumers.writer.coordinated.limits import CoordinatorLimits

__all__ = ["Coordinator", "CoordinatorLimits", "StoreConnection"]
