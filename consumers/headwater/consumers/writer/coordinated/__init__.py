"""The coordinated pipeline: rows are written by several connections at once, and offsets follow them.

After Hudi's RFC-24: a coordinator with a timeline, an assigner that spreads rows over buckets by their keys, and
writers that flush small batches of a bucket each. Where Hudi rolls back, what is repeated here changes nothing.

limits        when buckets are flushed, and how much is held
buckets       rows that wait for their acknowledgement, and the assigner
flushing      the writer of a bucket: a thread with a connection of its own
lanes         such a connection, which can be cut
instants      what belongs to an instant, and how far its buckets have to come
timeline      the instants as the store keeps them
slices        what is polled, in pieces that are bounded
coordinator   the writer's life
"""

from headwater.consumers.writer.coordinated.coordinator import Coordinator
from headwater.consumers.writer.coordinated.lanes import Lane
from headwater.consumers.writer.coordinated.limits import Limits

__all__ = ["Coordinator", "Lane", "Limits"]
