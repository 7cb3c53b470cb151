"""Writes of a barrier that happen once: each carries the barrier, and a barrier that runs again looks for it first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from headwater.errors import ConfigurationError, TerminalError
from headwater.versions.aligned.formats import find_format
from headwater.versions.aligned.formats.protocol import AlignableFormat, WriteSearch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class UncertainWriteError(TerminalError):
    """It can't be seen whether a barrier has written a sink before the job was killed."""


class UnmarkedWriteError(TerminalError):
    """A write didn't carry its barrier, so that it can't be found again."""


class BarrierSinks:
    """The writes of one barrier, in the order in which the function makes them."""

    def __init__(
        self,
        spark: SparkSession,
        prefix: str,
        number: int,
        before: Mapping[str, int | None],
        remember: Callable[[dict[str, int | None]], None],
    ) -> None:
        self._spark: Final = spark
        self._prefix: Final = prefix
        self._number: Final = number
        self._before = dict(before)
        self._remember: Final = remember
        self._steps: dict[str, int] = {}

    def write(self, sink: str, write: Callable[[], object], *, at_least_once: bool) -> bool:
        """Write a sink unless this barrier has; return whether it was written now."""
        step = self._steps[sink] = self._steps.get(sink, 0) + 1
        form = self._format(sink, at_least_once=at_least_once)
        if form is None:
            write()
            return True
        key = f"{sink} {step}"
        mark = f"{self._prefix}/{step}/{self._number}"
        found = self._search(form, sink, key, mark)
        if found.snapshot is not None:
            return False
        form.write_marked(self._spark, mark, write)
        after = form.find_mark(self._spark, sink, mark, self._before[key])
        if after.snapshot is None and after.unmarked:
            raise UnmarkedWriteError(
                f"{sink}: the snapshot {after.unmarked[0]} doesn't carry the barrier {mark}, so a barrier that runs "
                "again wouldn't find it. Write the table that `batch.write` names, by one write, from this thread"
            )
        return True

    def _format(self, sink: str, *, at_least_once: bool) -> AlignableFormat | None:
        form = find_format(self._spark, sink) if self._spark.catalog.tableExists(sink) else None
        if form is not None and form.can_mark:
            return form
        if at_least_once:
            return None
        what = "isn't a table that is there" if form is None else f"is a table of {form.name}"
        raise ConfigurationError(
            f"{sink} {what}: a write to it can't carry the barrier, so a barrier that runs again would write it twice. "
            "Create a table of Iceberg or Delta before the job starts, or say at_least_once=True"
        )

    def _search(self, form: AlignableFormat, sink: str, key: str, mark: str) -> WriteSearch:
        if key not in self._before:  # it is written down first, so that a second run knows where to look from
            self._before[key] = form.current(self._spark, sink)
            self._remember(dict(self._before))
            return WriteSearch(None, is_certain=True)
        found = form.find_mark(self._spark, sink, mark, self._before[key])
        if found.snapshot is None and not found.is_certain:
            raise UncertainWriteError(
                f"{sink}: it can't be seen whether the barrier {mark} was written before the job was killed, because "
                f"its snapshots since {self._before[key]} have expired or were rolled back. Look at the table; then "
                "start the job with a new checkpoint at the data version that fits"
            )
        if found.snapshot is None:
            self._remember(dict(self._before))
        return found
