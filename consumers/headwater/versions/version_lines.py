"""The versions of several tables backwards, read in portions for all tables together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import Final

from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef
from headwater.versions.contents import ContentsReader
from headwater.versions.model import TableContents

_PORTION: Final = 4
_GREATEST: Final = 256
_COMMITS: Final = 1_000
"""So many commits are looked at, where fewer versions are wanted: some change no rows, and are no versions."""


class VersionLines:
    """The versions of tables, each from a snapshot backwards. Whoever needs more of one table probably will of others:
    so the next ones of all are read at once, in portions that grow."""

    def __init__(self, reader: ContentsReader, starts: Sequence[tuple[SnapshotRef, int]]) -> None:
        """Of each table as many versions at most."""
        self._reader = reader
        line = reader.histories.line
        self._lines = [islice(line(ref, max(most, _COMMITS)), most) for ref, most in starts]
        self._refs: list[list[SnapshotRef]] = [[] for _ in starts]
        self._size = _PORTION

    def states(self, table: int, since: timedelta | None) -> Iterator[TableContents]:
        """Yield a table's versions, the newest first: those that aren't older than the newest by more than a time."""
        earliest: int | None = None
        for ref in self._line(table):
            state = self._reader.state(ref)
            made_at = state.version.made_at
            if since is not None and made_at is not None:
                earliest = made_at - int(since.total_seconds() * 1_000_000) if earliest is None else earliest
                if made_at < earliest:
                    return
            yield state

    def _line(self, table: int) -> Iterator[SnapshotRef]:
        found, index = self._refs[table], 0
        while index < len(found) or self._read_on(table):
            yield found[index]
            index += 1

    def _read_on(self, table: int) -> bool:
        """Read the next versions of all tables. Return whether there are any of one."""
        new = [list(islice(line, self._size)) for line in self._lines]
        self._size = min(self._size * 4, _GREATEST)
        for known, some in zip(self._refs, new, strict=True):
            known.extend(some)
        self._reader.histories.load([ref for some in new for ref in some])
        return bool(new[table])
