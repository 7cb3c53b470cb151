"""Writes of a barrier that happen once: each carries the barrier, and a barrier that runs again looks for it first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from headwater.errors import ConfigurationError, TerminalError
from headwater.versions.aligned.formats import TableLooker
from headwater.versions.aligned.formats.protocol import AlignableTable, WriteSearch


class UncertainWriteError(TerminalError):
    """It can't be seen whether a barrier has written a sink before the job was killed."""


class UnmarkedWriteError(TerminalError):
    """A write didn't carry its barrier, so that it can't be found again."""


class SinkWriter(Protocol):
    """What `batch.write` calls."""

    def write(self, sink: str, write: Callable[[], object], *, at_least_once: bool) -> bool:
        """Write a sink; return whether it was written now."""
        ...


class BarrierSinks:
    """The writes of one barrier, in the order in which the function makes them."""

    def __init__(
        self,
        looker: TableLooker,
        prefix: str,
        number: int,
        before: Mapping[str, int | None],
        remember: Callable[[dict[str, int | None]], None],
    ) -> None:
        self._looker: Final = looker
        self._prefix: Final = prefix
        self._number: Final = number
        self._before = dict(before)
        self._remember: Final = remember
        self._steps: dict[str, int] = {}

    def write(self, sink: str, write: Callable[[], object], *, at_least_once: bool) -> bool:
        """Write a sink unless this barrier has; return whether it was written now."""
        step = self._steps[sink] = self._steps.get(sink, 0) + 1
        table = self._looker.sink(sink)
        if table is None or not table.can_mark:
            if not at_least_once:
                what = (
                    "isn't a table of Iceberg, Delta or Paimon" if table is None else "has deletion vectors of Paimon"
                )
                raise ConfigurationError(
                    f"{sink} {what}: a write to it can't carry the barrier, so a barrier that runs again would write "
                    "it twice. Create a table that can before the job starts, or say at_least_once=True"
                )
            write()
            return True
        key = f"{sink} {step}"
        mark = mark_of(self._prefix, step, self._number)
        found = self._search(table, key, mark)
        if found.snapshot is not None:
            return False
        table.write_marked(mark, write)
        if table.tells_unmarked and (after := self._looker.sink(sink)) is not None:
            self._refuse_unmarked(after.unmarked_write(mark, self._before[key]), sink, mark)
        return True

    def _refuse_unmarked(self, snapshot: int | None, sink: str, mark: str) -> None:
        if snapshot is not None:
            raise UnmarkedWriteError(
                f"{sink}: the snapshot {snapshot} doesn't carry the barrier {mark}, so a barrier that runs again "
                "wouldn't find it. Write the table that `batch.write` names, by one write, from this thread"
            )

    def _search(self, table: AlignableTable, key: str, mark: str) -> WriteSearch:
        if key not in self._before:  # it is written down first, so that a second run knows where to look from
            self._before[key] = table.newest()
            self._remember(dict(self._before))
            return WriteSearch(None, is_certain=True)
        found = table.find_mark(mark, self._before[key])
        if found.snapshot is None and not found.is_certain:
            raise UncertainWriteError(
                f"{table.name}: it can't be seen whether the barrier {mark} was written before the job was killed, "
                f"because its snapshots since {self._before[key]} have expired or were rolled back. Look at the table; "
                "then start the job with a new checkpoint at the data version that fits"
            )
        if found.snapshot is None:
            self._remember(dict(self._before))
        return found


def mark_of(prefix: str, step: int, number: int) -> str:
    """Return the mark of a barrier's so-manieth write of a sink."""
    return f"{prefix}/{step}/{number}"
