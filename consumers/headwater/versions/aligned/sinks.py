"""Writes of a barrier that happen once: each carries the barrier, and a barrier that runs again looks for it first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from headwater.errors import ConfigurationError, TerminalError
from headwater.versions.aligned.formats import TableLooker
from headwater.versions.aligned.formats.protocol import AlignableTable, UnmarkedWriteError, WriteSearch


class UncertainWriteError(TerminalError):
    """It can't be seen whether a barrier has written a sink before the job was killed."""


_ONE_WRITE: Final = (
    ", so a barrier that runs again wouldn't find all of it. Write the table that `batch.write` names, by one write "
    "that is one commit, from this thread. Look at the table; then start the job with a new checkpoint at the data "
    "version that fits"
)


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
        *,
        is_new_job: bool = False,
        was_committed: bool = False,
    ) -> None:
        """`is_new_job` if this process began the checkpoint, so that nobody has written with its marks before;
        `was_committed` if the store says that the barrier is done, which the checkpoint doesn't know."""
        self._looker: Final = looker
        self._prefix: Final = prefix
        self._number: Final = number
        self._before = dict(before)
        self._remember: Final = remember
        self._is_new_job: Final = is_new_job
        self._was_committed: Final = was_committed
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
        try:
            table.write_marked(mark, write)
        except UnmarkedWriteError as e:
            raise UnmarkedWriteError(f"{e}{_ONE_WRITE}") from e
        after = self._looker.sink(sink)
        fault = None if after is None else after.fault_of_write(mark, self._before[key])
        if fault is not None:
            raise UnmarkedWriteError(f"{sink}: {fault}{_ONE_WRITE}")
        return True

    def _search(self, table: AlignableTable, key: str, mark: str) -> WriteSearch:
        """Look for a write, also where the checkpoint knows of none: it may be an older copy. There only the store can
        say that the barrier was committed; else what has expired wasn't this barrier's."""
        is_known = key in self._before
        if not is_known and self._is_new_job:
            found = WriteSearch(None, is_certain=True)
        else:
            found = table.find_mark(mark, self._before.get(key))
        if found.snapshot is not None:
            return found
        if not found.is_certain and (is_known or self._was_committed):
            since = f" since {self._before[key]}" if is_known else ""
            raise UncertainWriteError(
                f"{table.name}: it can't be seen whether the barrier {mark} was written before the job was killed, or "
                f"its checkpoint restored, because its snapshots{since} have expired or were rolled back. Look at the "
                "table; then start the job with a new checkpoint at the data version that fits"
            )
        if not is_known:  # it is written down first, so that a second run knows where to look from
            self._before[key] = table.newest_written()
        self._remember(dict(self._before))
        return found


def mark_of(prefix: str, step: int, number: int) -> str:
    """Return the mark of a barrier's so-manieth write of a sink."""
    return f"{prefix}/{step}/{number}"
