"""A forwarder that begins with what an archive has: events that the bus may have forgotten, and the bus behind them.

The ends of the archive are read first. So what the archiver adds meanwhile comes from the bus too, and nothing is
missed. What the bus has forgotten behind them is reported as a gap, as always.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Final

from headwater.consumers.archive.table import EventArchive
from headwater.consumers.sources import EventSource
from headwater.consumers.sources.archive import ArchiveSource
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
