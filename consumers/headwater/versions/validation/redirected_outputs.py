"""Finds in lineage where a job's writes are redirected, what the results begin with, and which rows are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.traversal.snapshot_rows import SnapshotWrite
from headwater.lineage.questions.traversal.tombstone_lookup import hidden_text
from headwater.versions.validation.job_commits import JobCommits, changes_rows
from headwater.versions.validation.model import ComparedRows, RedirectedOutput, ResultStart, ValidationObstacles
from headwater.versions.validation.pinned_inputs import PINNABLE, full_name_of

_ADDS: Final = "APPEND"
_REPEATABLE: Final = frozenset({_ADDS, "OVERWRITE", "DELETE", "UPDATE", "MERGE", "REPLACE", "CREATE", "TRUNCATE"})


class OutputPlanner:
    """Finds the redirects of one validation."""

    def __init__(
        self, job: JobCommits, names: Mapping[bytes, Dataset], obstacles: ValidationObstacles, *, copies: bool
    ) -> None:
        self._job = job
        self._copies = copies
        """Whether each result begins as a copy, whatever the job did."""
        self._names = names
        self._obstacles = obstacles

    def plan(self, sink: bytes) -> dict[bytes, RedirectedOutput]:
        """Return the redirect of each table that the job writes, the sink among them unless it can't be."""
        found = {key: self._redirect(key, is_sink=key == sink) for key in self._job.writes_by_table}
        return {key: output for key, output in found.items() if output is not None}

    def compared_rows(self, sink: RedirectedOutput, key: bytes, write: SnapshotWrite) -> ComparedRows:
        """Return which rows of the sink are compared. What others wrote in between may stand in the way."""
        made = [snapshot for _, snapshot in sink.commits]
        if write.snapshot in made and made[-1] != write.snapshot:
            self._obstacles.add(
                f"the same job wrote {sink.table} again after that: validate {sink.table}@{made[-1]}, its last snapshot"
            )
        writes = [write for write in self._job.writes_by_table[key] if changes_rows(write)]
        if sink.start is ResultStart.EMPTY and writes and not writes[0].restarts and sink.before is not None:
            return ComparedRows.ADDED
        since = next((n for n in range(len(writes) - 1, -1, -1) if writes[n].restarts), 0)
        last = [] if changes_rows(write) else [write]
        for before, after in pairwise([*writes[since:], *last]):
            if after.parent is not None and self._job.snapshot_before(after) != before.snapshot:
                self._obstacles.add(
                    f"another job wrote {sink.table} between its snapshots {before.snapshot} and {after.snapshot}, so "
                    "all of its rows can't be compared"
                )
        return ComparedRows.ALL

    def _redirect(self, key: bytes, *, is_sink: bool) -> RedirectedOutput | None:
        """Return where a table's writes are redirected; None, with a problem, if they can't be."""
        writes = self._job.writes_by_table[key]
        name = next((full for write in reversed(writes) if (full := full_name_of(write.name)) is not None), None)
        label = self._names[key].label if key in self._names else "something that Spark doesn't show"
        if (why := next((write.hidden for write in writes if write.hidden), None)) is not None:
            self._obstacles.add(f"{label} can't be redirected: {hidden_text(why, 'what was written to it')}")
            return None
        if name is None or writes[0].format not in PINNABLE:
            if is_sink or not self._obstacles.allows(name or label):
                cause = "it is written by its path alone" if name is None else f"a table of {writes[0].format} can't be"
                self._obstacles.add(f"{label} can't be redirected: {cause}; name it by --allow to let it be written")
            return None
        changing = [write for write in writes if changes_rows(write)]
        if strange := [write.kind for write in changing if write.kind not in _REPEATABLE]:
            self._obstacles.add(f"{label} was changed by {strange[0]}, which isn't run again")
        if any(write.branch for write in writes):
            branch = next(write.branch for write in writes if write.branch)
            self._obstacles.add(
                f"{label} was written on the branch {branch}, and no format lets a table of results stand behind a "
                "branch's name: compare rows by `headwater table diff`"
            )
        if any(write.snapshot is None for write in changing):
            self._obstacles.add(f"which snapshot of {label} the job made isn't known: {writes[0].candidates or '?'}")
        return RedirectedOutput(
            table=name,
            format=writes[0].format,
            generation=writes[0].generation,
            commits=tuple((write.parent, write.snapshot) for write in changing if write.snapshot is not None),
            start=self._start(key, changing),
            replaces_first=bool(changing) and changing[0].restarts,
        )

    def _start(self, key: bytes, writes: Sequence[SnapshotWrite]) -> ResultStart:
        """Return what the result begins with. Whatever replaces a part of the rows begins with a copy, because the rows
        that stay are compared too: a job that replaces a wrong part shows in them."""
        if self._job.creates(writes):
            return ResultStart.ABSENT
        if not writes or writes[0].parent is None:
            return ResultStart.EMPTY
        made = {write.snapshot for write in writes}
        reads = [read.snapshot for read in self._job.reads if self._job.table_of(read) == key]
        adds_only = all(write.kind == _ADDS and write.replaced == "NOTHING" for write in writes)
        is_empty = not reads if adds_only else writes[0].restarts and made.issuperset(reads)
        is_empty = is_empty and not self._copies
        return ResultStart.EMPTY if is_empty else ResultStart.COPY
