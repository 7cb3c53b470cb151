"""The tables of a correction in a Spark session: mirrors are branches, as the table's format has them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from headwater.versions.aligned.formats import TableLooker
from headwater.versions.aligned.formats.protocol import AlignableTable, CommitEffect, SourceCommit
from headwater.versions.branches.delta import drop_clone
from headwater.versions.branches.format_branches import FormatBranches, branches_of
from headwater.versions.branches.model import Branch, BranchError
from headwater.versions.correction.execution.tables import CorrectionError, CorrectionTables, LaterCommits, Mirror
from headwater.versions.correction.model import PlannedTable
from headwater.versions.validation.results import full_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkCorrectionTables(CorrectionTables):
    """Uses the session's JVM, without a lens."""

    def __init__(self, spark: SparkSession, dropped: Collection[str] = ()) -> None:
        """`dropped` are tables that aren't there any more, as the user says: else a session that lacks their catalog
        would take mirrors for gone that are there."""
        self._spark = spark
        self._dropped = frozenset(dropped)
        self._looker = TableLooker(spark)

    def make_mirror(self, planned: PlannedTable, branch: str) -> Mirror:
        formats = branches_of(self._spark, full_name(planned.table))
        begins = formats.main_head() if planned.starts_at is None else planned.starts_at
        if begins is None:
            raise CorrectionError(f"{planned.table} has no snapshot any more: plan the correction anew")
        found = _find(formats, branch)
        if found is None:
            now = datetime.now(timezone.utc).replace(microsecond=0)
            try:
                formats.create_mirror(Branch(branch, None, begins, now, begins))
            except Exception as e:
                raise CorrectionError(
                    f"no mirror of {planned.table} can be made at its snapshot {begins}: {_first_line(e)}. If the "
                    "snapshot has expired, correct from a newer one, or leave the table out by --only"
                ) from e
            formats.look()
            found = _existing(formats, branch)
        if planned.starts_at is None and not self._spark.table(formats.name_of(found)).isEmpty():
            formats.empty(found)
            formats.look()
            found = _existing(formats, branch)
        assert found.head is not None  # noqa: S101 - it was made at a snapshot
        return Mirror(
            table=planned.table,
            branch=branch,
            name=formats.name_of(found),
            begins_at=found.head,
            begins_at_in_table=begins,
            expected=begins,
        )

    def remove_mirror(self, table: str, branch: str) -> None:
        name = full_name(table)
        try:
            formats = branches_of(self._spark, name)
        except BranchError as e:
            if table not in self._dropped:
                raise BranchError(f"{e}. If it was dropped, say --dropped {table}") from e
        else:
            found = _find(formats, branch)
            if found is not None:
                formats.delete_mirror(found)
        drop_clone(self._spark, name, branch)

    def head_of_table(self, table: str) -> int | None:
        return self._looker.source(full_name(table), anew=True).newest()

    def head_of_mirror(self, mirror: Mirror) -> int:
        formats = branches_of(self._spark, full_name(mirror.table))
        found = _find(formats, mirror.branch)
        if found is None or found.head is None:
            raise CorrectionError(
                f"the mirror {mirror.name} is gone: somebody has deleted it. Abort the correction, and begin it again"
            )
        return found.head

    def location_of(self, name: str) -> str:
        return branches_of(self._spark, name).location

    def changes_of_mirror(self, mirror: Mirror) -> Sequence[str]:
        now = self._looker.source(mirror.name, anew=True)
        commits = now.commits_after(now.at(mirror.begins_at))
        return [] if commits is None else _obstacles(now, commits)

    def added_rows(self, table: str, since: int, until: int) -> DataFrame:
        """Return the rows that a table's commits after `since`, until `until`, added. A CorrectionError if one of them
        changed rows, so that which rows it brought isn't known."""
        source = self._looker.source(full_name(table), anew=True)
        commits = _until(source, since, until)
        if obstacles := _obstacles(source, commits):
            raise CorrectionError(f"{', '.join(obstacles)} changed rows of {table}, in place of adding some")
        if not any(commit.effect is CommitEffect.ADDS for commit in commits):
            return source.state(source.at(until)).limit(0)
        return source.additions(source.at(since), source.at(until), commits)

    def later_commits(self, table: str, since: int) -> LaterCommits:
        now = self._looker.source(full_name(table), anew=True)
        commits = now.commits_after(now.at(since))
        if commits is None:
            raise CorrectionError(
                f"{table} isn't made from its snapshot {since} any more: it was rolled back or replaced, or snapshots "
                "have expired. Abort the correction, and plan it anew"
            )
        newest = now.newest()
        return LaterCommits(
            newest=since if newest is None else newest,
            snapshots=tuple(commit.snapshot for commit in commits),
            adds=any(commit.effect is CommitEffect.ADDS for commit in commits),
            obstacles=tuple(_obstacles(now, commits)),
        )

    def take_over(self, mirror: Mirror, since: int, until: int, mark: str) -> int | None:
        name = full_name(mirror.table)
        target = self._looker.sink(mirror.name)
        if target is None:
            raise CorrectionError(f"the mirror {mirror.name} is gone: abort the correction, and begin it again")
        found = target.find_mark(mark, None).snapshot
        if found is not None:
            return found
        source = self._looker.source(name, anew=True)
        commits = _until(source, since, until)
        if obstacles := _obstacles(source, commits):
            raise CorrectionError(f"{', '.join(obstacles)} changed rows, which can't be taken over by adding rows")
        added = [commit for commit in commits if commit.effect is CommitEffect.ADDS]
        if not added:
            return None
        rows = source.additions(source.at(since), source.at(until), added)
        self._check_columns(mirror, rows.columns)
        target.write_marked(mark, lambda: rows.writeTo(mirror.name).append())
        return self.head_of_mirror(mirror)

    def _check_columns(self, mirror: Mirror, columns: Sequence[str]) -> None:
        there = self._spark.table(mirror.name).columns
        if differing := sorted({*columns}.symmetric_difference(there)):
            raise CorrectionError(
                f"{mirror.table} and its mirror have other columns ({', '.join(differing)}), so what production has "
                "added can't be taken over: change the mirror by the same ALTER TABLE (`headwater correct sql`), or "
                "abort the correction and begin it again"
            )


def _until(source: AlignableTable, since: int, until: int) -> list[SourceCommit]:
    """Return the commits after one snapshot, until another one."""
    commits = [*(source.commits_after(source.at(since)) or [])]
    known = next((place for place, commit in enumerate(commits) if commit.snapshot == until), None)
    if known is None:
        raise CorrectionError(f"{source.name} has no snapshot {until} behind {since} any more: plan it anew")
    return commits[: known + 1]


def _obstacles(table: AlignableTable, commits: Sequence[SourceCommit]) -> list[str]:
    changes = [commit for commit in commits if commit.effect is CommitEffect.CHANGES]
    return [f"{table.name.replace('`', '')}@{each.snapshot} ({each.operation.lower()})" for each in changes]


def _find(formats: FormatBranches, branch: str) -> Branch | None:
    formats.look()
    return next((each for each in formats.branches() if each.name.lower() == branch.lower()), None)


def _existing(formats: FormatBranches, branch: str) -> Branch:
    found = _find(formats, branch)
    if found is None:
        raise CorrectionError(f"the mirror {branch} of {formats.name} is gone as soon as it was made: try again")
    return found


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
