"""The interface of what an archive is written to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from headwater.consumers.archive.arrow import ArrowTable
from headwater.consumers.archive.state import ArchivedRange
from headwater.consumers.sources.api import OffsetGap
from headwater.lineage.bulk import BusPartition


class ArchiveTable(Protocol):
    """Where records go. Its methods may be called from two threads."""

    def next_offsets(self, cluster: str) -> Mapping[BusPartition, int]:
        """Return where archiving continues in the partitions of a cluster, whoever archived them."""
        ...

    def append(self, table: ArrowTable, ranges: Sequence[ArchivedRange], gaps: Sequence[OffsetGap] = ()) -> None:
        """Add records, all of them or none. `ranges` say which offsets they are all records of.

        Raises OffsetsTakenError, and adds nothing, if a range doesn't begin where the archive ends: another process was
        quicker. A TransientError leaves open whether they were added: `next_offsets` says it.
        """
        ...

    def close(self) -> None: ...
