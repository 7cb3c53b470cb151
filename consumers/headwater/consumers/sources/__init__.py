"""Sources of events: a bus, read from where its consumer group is, or where a store says.

api                the interface of a source
local_log          reads a local log
kafka              reads a topic as a member of a consumer group
kafka_client       a topic as all see it who read it: its id, its offsets, its records
kafka_offsets      keeps what comes next of each partition, and finds the gaps and recreated topics
archive            reads an archive
group_start        gives a new consumer group the offsets that it begins at
gap_events         makes Gap events of records that a bus lost
"""

from headwater.consumers.sources.api import BusRecord, EventSource, OffsetGap, SharedSource, SourceBatch

__all__ = ["BusRecord", "EventSource", "OffsetGap", "SharedSource", "SourceBatch"]
