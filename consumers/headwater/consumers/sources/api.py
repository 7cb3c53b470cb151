"""The interface of a source of events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition

StoredOffsets: TypeAlias = Callable[[str], Mapping[BusPartition, int]]
"""Returns the offsets of a consumer group that a store has for a cluster."""


class BusRecord(NamedTuple):
    """A record as it stands on the bus. It is a named tuple because one is created for every event."""

    data: bytes
    partition: BusPartition
    offset: int
    append_time: int | None
    """The bus's own time in microseconds; None if it has none."""
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True)
class OffsetGap:
    """Records that were on the bus, or should have been, and are missing."""

    partition: BusPartition
    first: int
    end: int | None
    """The first offset that exists again; None if nobody knows how much is lost."""
    reason: GapReason


@dataclass(frozen=True)
class SourceBatch:
    """Records of one poll, with the offsets to continue from."""

    records: tuple[BusRecord, ...] = ()
    next: Mapping[BusPartition, int] = field(default_factory=dict)
    """The next offset of each partition that records came from."""
    gaps: tuple[OffsetGap, ...] = ()
    ends: Mapping[BusPartition, int] = field(default_factory=dict)
    """For partitions read to their end, the time up to which they were read completely, in microseconds; 0 if nothing
    is known yet."""

    def __bool__(self) -> bool:
        return bool(self.records or self.next or self.gaps or self.ends)


CLOCK_SKEW_MICROS: Final = 60_000_000
"""How much the clocks of a bus and its reader may differ, in microseconds. No record older than that can still arrive
at the end of a partition."""
END_CHECK_SECONDS: Final = 30.0
"""How often idle partitions are checked for their end."""


class EventSource(Protocol):
    """A source of events, for one thread at a time. Records that weren't confirmed with `done` come again."""

    @property
    def kind(self) -> str:
        """The name in dead letters and ingest progress: `kafka` or `log`."""
        ...

    @property
    def topic(self) -> str:
        """The topic's name, for people."""
        ...

    def poll(self, most: int, timeout: float) -> SourceBatch:
        """Return the next records. Waits at most `timeout` seconds for the first one."""
        ...

    def rest(self) -> None:
        """Stop fetching until the next `poll`, but stay a member of the consumer group. Call it regularly while the
        writer can't accept records."""
        ...

    def done(self, positions: Mapping[BusPartition, int]) -> None:
        """Confirm that everything before these offsets is stored. The store has the offsets itself; this shows them to
        others, and serves stores that keep none."""
        ...

    def rewind(self) -> None:
        """Continue at the offsets that the store has, because it lost what came after them. Whoever calls this discards
        what was polled and isn't stored."""
        ...

    def lag(self) -> int | None:
        """Return how many records are unread; None if that is unknown at the moment."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class SharedSource(Protocol):
    """A source whose partitions can go to another member of its group while it is read."""

    def owns(self, partition: BusPartition) -> bool:
        """Return whether this member has read the partition without a break since the last poll. What it polled of
        others comes again, to another member or to this one."""
        ...
