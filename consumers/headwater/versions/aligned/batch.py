"""What the user's function gets for one barrier: the sources at one data version, and sinks that are written once.

Writes of a barrier that happen once: each carries the barrier, and a barrier that runs again looks for it first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from headwater.errors import ConfigurationError, TerminalError
from headwater.versions.aligned.formats import TableLooker
from headwater.versions.aligned.formats.protocol import (
    AlignableTable,
    CommitEffect,
    SourceCommit,
    UnalignableTableError,
    UnmarkedWriteError,
    WriteSearch,
)
from headwater.versions.aligned.lookup import KEYS_AT_MOST, LookupJoin, look_up
from headwater.versions.cuts import Cut

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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


OverwritePolicy: TypeAlias = Literal["fail", "full", "ignore"]
"""What happens if a source's rows were changed or removed, so that additions alone don't tell what is new."""


class OverwrittenSourceError(TerminalError):
    """Rows of a source were changed or removed, and the job doesn't say what is to be done then."""


class AlignedBatch:
    """One barrier of an aligned job.

    Its sources are at the snapshots of one data version, which all jobs of the group read.
    """

    def __init__(
        self,
        spark: SparkSession,
        looker: TableLooker,
        *,
        number: int,
        cut: Cut,
        before: Cut | None,
        tables: Mapping[str, str],
        overwrites: Mapping[str, OverwritePolicy],
        sinks: SinkWriter,
    ) -> None:
        self.spark: Final = spark
        self.number: Final = number
        """The number of the data version."""
        self.cut: Final = cut
        self._looker: Final = looker
        self._before: Final = before
        self._tables: Final = tables
        self._overwrites: Final = overwrites
        self._sinks: Final = sinks
        self._commits: dict[str, list[SourceCommit] | None] = {}
        self._pinned: list[DataFrame] = []
        """What the function got of its sources."""

    def state(self, source: str) -> DataFrame:
        """Return all rows of a source at this data version."""
        table = self._table(source)
        return self._pin(self._looker.source(table).state(self.cut[table]))

    def changes(self, source: str) -> DataFrame:
        """Return what this data version added to a source since the barrier before.

        At the job's first barrier, and wherever `is_full` says so, these are all rows of the source.
        """
        table = self._table(source)
        commits = self._commits_of(source)
        if self.is_full(source) or commits is None or self._before is None:
            return self.state(source)
        if not any(commit.effect is CommitEffect.ADDS for commit in commits):
            return self.state(source).limit(0)
        return self._pin(self._looker.source(table).additions(self._before[table], self.cut[table], commits))

    def history(self, source: str) -> DataFrame:
        """Return what a source had before this barrier: its state without its changes. Nothing where `is_full`."""
        table = self._table(source)
        if self.is_full(source) or self._before is None:
            return self.state(source).limit(0)
        return self._pin(self._looker.source(table).state(self._before[table]))

    def lookup(
        self,
        source: str,
        rows: DataFrame,
        on: str | Sequence[str],
        *,
        how: LookupJoin = "inner",
        columns: Sequence[str] | None = None,
        history: bool = False,
        keys_at_most: int = KEYS_AT_MOST,
    ) -> DataFrame:
        """Return rows joined with a source at this data version, by columns that both have.

            revenue = batch.lookup("products", batch.changes("orders"), on="product")

        The result is that of a join with `state(source)`, or with `history(source)` if you say so. If the rows are made
        of the barrier's sources and have few keys (`keys_at_most`), only what may have those is read of the source; the
        rows are computed twice then. `columns` are those that are wanted of the source; all unless given.
        """
        table = self.history(source) if history else self.state(source)
        return look_up(
            rows,
            table,
            on,
            source=source,
            how=how,
            columns=columns,
            keys_at_most=keys_at_most,
            pinned=self._pinned,
        )

    def is_full(self, source: str) -> bool:
        """Return whether `changes` gives all rows of a source: at the job's first barrier, and after an overwrite that
        the job takes as `full`. Then results of before have to be replaced."""
        commits = self._commits_of(source)
        if commits is None:
            return True
        overwritten = next((commit for commit in commits if commit.effect is CommitEffect.CHANGES), None)
        policy = self._overwrites[source]
        if overwritten is not None and policy == "fail":
            table = self._table(source)
            raise OverwrittenSourceError(
                f"{table}@{overwritten.snapshot} ({overwritten.operation}) changed or removed rows, which `changes` "
                f"can't give: read batch.state({source!r}), or start the job with overwrites='full' (all rows again, "
                "`is_full` says so) or 'ignore' (only what other commits added)"
            )
        return overwritten is not None and policy == "full"

    def write(self, sink: str, write: Callable[[], object], *, at_least_once: bool = False) -> bool:
        """Write a table, unless this barrier has written it before the job was killed; return whether it did now.

            batch.write("lake.db.revenue", revenue.writeTo("lake.db.revenue").append)
            batch.write("lake.db.top10", lambda: spark.sql("MERGE INTO lake.db.top10 …"))

        `write` makes one commit, from this thread and in this session. A function that writes a table twice calls this
        twice, always in the same order.
        """
        return self._sinks.write(sink, write, at_least_once=at_least_once)

    def _pin(self, frame: DataFrame) -> DataFrame:
        self._pinned.append(frame)
        return frame

    def _commits_of(self, source: str) -> list[SourceCommit] | None:
        """Return the commits since the barrier before; None at the first one."""
        if source not in self._commits:
            self._commits[source] = self._load_commits(self._table(source))
        return self._commits[source]

    def _load_commits(self, table: str) -> list[SourceCommit] | None:
        if self._before is None:
            return None
        before, until = self._before[table], self.cut[table].snapshot
        if before.snapshot == until:
            return []
        found = self._looker.source(table).commits_after(before) or ()
        numbers = [commit.snapshot for commit in found]
        if until not in numbers:
            raise UnalignableTableError(
                f"{table} isn't made from its snapshots {before.snapshot} and {until} any more, one after the other: "
                "they have expired, or it was rolled back. Start the job with a new checkpoint; if the table was "
                "rolled back, in a group of another name"
            )
        return list(found[: numbers.index(until) + 1])

    def _table(self, source: str) -> str:
        try:
            return self._tables[source]
        except KeyError:
            names = [name for name, table in self._tables.items() if table == source]
            meant = f": {source} is the table of {names[0]!r}" if names else ""
            raise ConfigurationError(
                f"there is no source {source!r}{meant}: this job's are {', '.join(sorted(self._tables))}. Name another "
                "table as one in sources={…} of aligned_query, and it is read at the same data versions"
            ) from None
