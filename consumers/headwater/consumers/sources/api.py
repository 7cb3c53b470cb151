"""What a source gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from headwater.events.health import GapReason
from headwater.lineage.bulk import Partition


class Taken(NamedTuple):
    """A record as it stands on the bus. A named tuple: one is made for every event."""

    data: bytes
    partition: Partition
    offset: int
    appended: int | None
    """The bus's own time, in microseconds; None where it tells none."""
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True)
class Hole:
    """Records that were on the bus, or should have been, and don't come."""

    partition: Partition
    first: int
    following: int | None
    """The first that is there again; None where nobody knows how much is gone."""
    why: GapReason


@dataclass(frozen=True)
class Batch:
    records: tuple[Taken, ...] = ()
    next: Mapping[Partition, int] = field(default_factory=dict)
    """Of each partition that anything came from, what comes next."""
    holes: tuple[Hole, ...] = ()
    ends: Mapping[Partition, int] = field(default_factory=dict)
    """Of partitions that were read to their end, the time up to which all of them was given, in microseconds;
    0 of those of which nothing is known yet."""

    def __bool__(self) -> bool:
        return bool(self.records or self.next or self.holes or self.ends)


CLOCKS: Final = 60_000_000
"""So much the clocks of a bus and of its reader may differ, in microseconds. Where a partition ends nothing older than
that can come any more."""
END_SECONDS: Final = 30.0
"""Between two looks at where partitions end that nothing comes from."""


class Source(Protocol):
    """For one thread at a time. What wasn't said to be done comes again, to whoever reads then."""

    @property
    def kind(self) -> str:
        """What dead letters and ingest times call it: `kafka`, `log`."""
        ...

    @property
    def topic(self) -> str:
        """What people call it."""
        ...

    def poll(self, most: int, timeout: float) -> Batch:
        """The next records; waits for the first of them so long, in seconds."""
        ...

    def rest(self) -> None:
        """Nothing can be taken now: nothing is fetched until the next `poll`, and whoever asks hears that the reader
        lives. To be said again every now and then."""
        ...

    def done(self, positions: Mapping[Partition, int]) -> None:
        """All before these is in the store. The store knows it too: this is for others to see, and for a store that
        keeps no offsets."""
        ...

    def behind(self) -> int | None:
        """How many records are there that weren't given yet; None where that isn't known now."""
        ...

    def close(self) -> None: ...
