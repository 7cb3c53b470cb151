"""Where a forwarder begins that has never read its bus, and what it reads.

A start counts once for each bus and group. What stands before the bus, such as what a store has now, is sent first; if
the process dies meanwhile it is sent again from its beginning, and only then the bus is read.

A forwarder that begins with what an archive has: events that the bus may have forgotten, and the bus behind them.

The ends of the archive are read first. So what the archiver adds meanwhile comes from the bus too, and nothing is
missed. What the bus has forgotten behind them is reported as a gap, as always.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final, Protocol

from headwater.consumers.archive.table import EventArchive
from headwater.consumers.sources import EventSource
from headwater.consumers.sources.archive import ArchiveSource
from headwater.consumers.sources.group_start import GroupStart
from headwater.errors import ConfigurationError
from headwater.lineage.bulk import BusPartition

_GROUP: Final = "start"


class ArchiveStart:
    """The events of an archive."""

    def __init__(self, place: str) -> None:
        """Raises a ConfigurationError if nothing is archived there."""
        self._place = place
        with closing(EventArchive.open(place)) as archive:
            partitions = archive.refresh().partitions
        self.offsets: Final[Mapping[BusPartition, int]] = {each: known.next for each, known in partitions.items()}
        """Where the bus goes on."""
        if not self.offsets:
            raise ConfigurationError(f"{place} has no events: name the place of `headwater archive run`")

    def open(self) -> EventSource:
        return ArchiveSource(self._place, _GROUP, _no_offsets)


def _no_offsets(cluster: str) -> Mapping[BusPartition, int]:  # noqa: ARG001 - of no cluster
    """Nothing is committed to what is read before the bus."""
    return {}


class ForwarderBus(Protocol):
    """A bus that forwarders read, each in a consumer group of its own."""

    @property
    def name(self) -> str:
        """Names the bus in the state: the kind and topic or directory, not the brokers, which may change."""
        ...

    def open(self, group: str) -> EventSource: ...

    def has_begun(self, group: str) -> bool:
        """Return whether the bus has an offset of the group."""
        ...

    def begin(self, group: str, start: GroupStart | None, offsets: Mapping[BusPartition, int]) -> None:
        """Give each partition that has no offset of the group one: that in `offsets`, else as `start` says. With no
        `start` others are read from their beginning."""
        ...


class InitialEvents(Protocol):
    """Events that are sent before those of a bus: what a store has now, or an archive of the bus."""

    @property
    def offsets(self) -> Mapping[BusPartition, int]:
        """Where the bus goes on behind them without a hole. What it has twice is sent twice."""
        ...

    def open(self) -> EventSource:
        """Open a source that is read to its end. Nothing is committed to it: who didn't come to the end reads all of it
        again, so its records have to have the same partitions and offsets each time."""
        ...


@dataclass(frozen=True)
class ForwarderStart:
    """Where a forwarder begins."""

    name: str
    """As it is configured."""
    partitions: GroupStart
    """Where partitions begin that the initial events have no offset of."""
    initial: Callable[[], InitialEvents] | None = field(default=None)


FROM_BEGINNING: Final = ForwarderStart("beginning", GroupStart.BEGINNING)
FROM_END: Final = ForwarderStart("end", GroupStart.END)
