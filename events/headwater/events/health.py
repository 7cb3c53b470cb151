"""What headwater tells of itself: what may have been missed, that it is alive, that it is gone."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from headwater.events.base import CountMap
from headwater.events.envelope import EventFamily
from headwater.events.jobs import JobEvent, Source
from headwater.events.scalars import Count, EventEnum, IdentityString, Int, Long, Timestamp, TruncatableText


class GapReason(EventEnum):
    UNKNOWN = "UNKNOWN"
    OTHER = "OTHER"
    QUEUE_OVERFLOW = "QUEUE_OVERFLOW"
    """Spark dropped what its listener bus couldn't hold, or our own bounded queue did."""
    SPOOL_LIMIT = "SPOOL_LIMIT"
    SPOOL_FAILED = "SPOOL_FAILED"
    CORRUPTION = "CORRUPTION"
    CAPTURE_FAILED = "CAPTURE_FAILED"
    NOT_EXACT = "NOT_EXACT"
    """Something happened, but which snapshot it read or made can't be known."""
    NOT_SUPPORTED = "NOT_SUPPORTED"
    SWITCHED_OFF = "SWITCHED_OFF"
    PRODUCER_DIED = "PRODUCER_DIED"
    LOG_EXPIRED = "LOG_EXPIRED"
    """The bus no longer holds what a consumer hadn't read yet."""
    LOG_RECREATED = "LOG_RECREATED"


class Gap(JobEvent):
    """Events may have been missed: `reason` says why, the other fields when, whose and how many, as far as known.

    >>> Gap(reason=GapReason.SPOOL_LIMIT, missed=12, detail="the spool was full").missed
    12
    """

    kind: Literal["Gap"] = "Gap"
    schema_version: Literal[1] = 1
    reason: GapReason
    detail: TruncatableText = ""
    missed_family: EventFamily | None = None
    missed: Count | None = None
    """How many events, at most."""
    missed_producer: UUID | None = None
    first_sequence: Count | None = None
    last_sequence: Count | None = None
    first_family_sequence: Count | None = None
    last_family_sequence: Count | None = None
    incarnation: UUID | None = None
    first_barrier: Long | None = None
    last_barrier: Long | None = None
    first_time: Timestamp | None = None
    last_time: Timestamp | None = None
    listener: IdentityString | None = None
    """The listener that missed them, where others may have got them."""
    source: Source | None = None
    """The dataset that it is about, where it is about one."""
    cluster: IdentityString | None = None
    topic: IdentityString | None = None
    topic_id: IdentityString | None = None
    partition: Int | None = None
    first_offset: Count | None = None
    last_offset: Count | None = None


class Heartbeat(JobEvent):
    """The producer is alive and has emitted everything up to its last sequence number.

    >>> Heartbeat(interval=60).interval
    60
    """

    kind: Literal["Heartbeat"] = "Heartbeat"
    schema_version: Literal[1] = 1
    interval: Count | None = None
    """Seconds until the next one: who misses it for much longer may take the producer for dead."""
    dropped: CountMap = CountMap()
    """How much was dropped so far, by where."""


class Closed(JobEvent):
    """The producer has emitted everything and ended: that no Heartbeat follows is no gap.

    >>> Closed().complete
    True
    """

    kind: Literal["Closed"] = "Closed"
    schema_version: Literal[1] = 1
    dropped: CountMap = CountMap()
    complete: bool = True
    """False where something was left in the spool for somebody else to ship."""
