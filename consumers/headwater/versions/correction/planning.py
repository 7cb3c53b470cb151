"""Plans a correction from the store alone. Nothing is changed, and no table is looked at."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.events.clock import moment_of
from headwater.events.names import VALIDATION_JOB_NAMESPACE
from headwater.lineage.questions.answers import AnswerLimit, LimitReason
from headwater.lineage.questions.commit_facts import unclear_writes
from headwater.lineage.questions.completeness import complete_until, gaps
from headwater.lineage.questions.datasets import load_datasets
from headwater.lineage.questions.lineage_answers import add_known_limits
from headwater.lineage.questions.name_checks import TableSubject, check_snapshot
from headwater.lineage.questions.names import find, find_all
from headwater.lineage.questions.snapshots import format_job_key
from headwater.lineage.questions.start_points import StartPoint, StartSelector, find_start
from headwater.lineage.questions.traversal.context import Basis, TraversalContext
from headwater.lineage.questions.traversal.limits import LimitCollector
from headwater.lineage.questions.traversal.snapshot_rows import load_writes_of_commits
from headwater.lineage.questions.traversal.tombstone_lookup import hidden_text
from headwater.lineage.questions.uses import find_reachable_tables
from headwater.versions.commit_lines import keeps_rows
from headwater.versions.correction.model import CorrectionMode, CorrectionPlan, PlannedJob
from headwater.versions.correction.planned_jobs import ChainJobKey, JobPlanner
from headwater.versions.correction.planned_tables import ChainTable, TablePlanner
from headwater.versions.correction.rerun_commands import RerunCommands
from headwater.versions.correction.wrong_snapshots import WrongSnapshots

_DEPTH: Final = 100
_NO_COMMANDS: Final = RerunCommands({})


def plan_correction(
    connection: Connection,
    source: str,
    *,
    mode: CorrectionMode = CorrectionMode.FULL,
    only: Collection[str] = (),
    commands: RerunCommands = _NO_COMMANDS,
    now: datetime | None = None,
) -> CorrectionPlan:
    """Return how everything is corrected that was made from a wrong snapshot, `"lake.ods.orders@4"`.

    With `only` these tables are corrected, and those between them and the wrong one. A ConfigurationError says that
    there is no such table or snapshot, or that nobody reported who made it.
    """
    until = complete_until(connection, now)
    walk = TraversalContext(connection)
    start = _find_source(walk, source)
    wrong = WrongSnapshots(walk)
    wrong.search(start.writes)
    tables = TablePlanner(walk, wrong, start)
    jobs = JobPlanner(walk, wrong, tables.source, start.writes)
    planned = jobs.plan(commands)
    tables.add_problems(jobs, planned)
    wanted = _tables_to_correct(connection, tables, only)
    limits = _Limits(walk, tables, start)
    limits.add_beside()
    limits.add_behind_unversioned()
    limits.add_unclear()
    chosen = [table for table in tables.order if table.key in wanted]
    found = tuple(tables.planned(table, mode, jobs, planned) for table in chosen)
    ranked = _ranked_jobs(planned, jobs, chosen)
    corrected = {table.table for table in found if table.is_corrected}
    return CorrectionPlan(
        source=start.dataset.label if not tables.tables else tables.tables[tables.source].dataset.label,
        snapshot=start.writes[0].snapshot or 0,
        mode=mode,
        tables=found,
        jobs=tuple(replace(job, is_needed=not corrected.isdisjoint(job.writes)) for job in ranked),
        left_out=tuple(table.dataset.label for table in tables.order if table.key not in wanted),
        complete_until=until,
        limits=limits.all(now),
    )


def _find_source(walk: TraversalContext, source: str) -> StartPoint:
    """Return the wrong snapshot with who wrote it."""
    named = find(walk.connection, source)
    label = named.dataset.label
    if named.column is not None:
        raise ConfigurationError(f"{source!r} names a column: snapshots are corrected, so write {label}@SNAPSHOT")
    if named.snapshot is None:
        raise ConfigurationError(f"which snapshot of {label} is wrong? Write it as {label}@SNAPSHOT")
    start = find_start(walk, named.dataset, StartSelector(named.snapshot), Basis.STATE)
    if not start.writes:
        about = TableSubject(named.dataset, walk.identities.group(named.dataset.key))
        check_snapshot(walk.connection, about, named.snapshot)
        raise ConfigurationError(
            f"nobody reported who made {label}@{named.snapshot}, so which later snapshots contain it isn't known: "
            f"let headwater look into the table's own log first, `headwater reconcile {label}`"
        )
    write = start.writes[0]
    if write.hidden is not None:
        raise ConfigurationError(f"{label}@{named.snapshot}: {hidden_text(write.hidden)}, so no plan can be made")
    if write.branch is not None or not write.main:
        raise ConfigurationError(
            f"{label}@{named.snapshot} is of the branch {write.branch or 'that is held back'}, and what readers of the "
            "table's name see is corrected: name a snapshot of main"
        )
    return start


def _tables_to_correct(connection: Connection, tables: TablePlanner, only: Collection[str]) -> set[bytes]:
    """Return the tables that are asked for, with all that is between them and the wrong one."""
    if not only:
        return set(tables.tables)
    keys = {tables.source}
    for text, named in zip(only, find_all(connection, list(only)), strict=True):
        if named.dataset.key not in tables.tables:
            there = ", ".join(table.dataset.label for table in tables.order) or "nothing"
            raise ConfigurationError(f"--only {text}: nothing wrong is known of it. Wrong are, or were: {there}")
        keys.add(named.dataset.key)
    return tables.above(keys)


def _ranked_jobs(
    planned: Mapping[ChainJobKey, PlannedJob], jobs: JobPlanner, chosen: Sequence[ChainTable]
) -> list[PlannedJob]:
    """Return the jobs that make these tables, in the order in which they do."""
    makers = jobs.jobs_of_tables
    ranks: dict[ChainJobKey, int] = {}
    for rank, table in enumerate(chosen):
        for job in makers.get(table.key, ()):
            ranks.setdefault(job, rank)
    return [planned[job] for job in sorted(ranks, key=lambda job: (ranks[job], planned[job].job))]


class _Limits:
    """Finds what isn't known, so that more may be wrong than what was found."""

    def __init__(self, walk: TraversalContext, tables: TablePlanner, start: StartPoint) -> None:
        self._walk = walk
        self._tables = tables
        self._start = start
        self._since: Final = min(write.at for write in start.writes)

    def add_beside(self) -> None:
        """Name what the commit of the wrong snapshot wrote to other tables: what was wrong there may be so here."""
        commits = {(write.commit_id, write.barrier) for write in self._start.writes if write.commit_id is not None}
        for write in load_writes_of_commits(self._walk.connection, commits):
            key = None if write.dataset is None else self._walk.identities.one(write.dataset, write.generation)
            if key is not None and key not in self._tables.tables and not keeps_rows([write]):
                detail = "the commit that made the wrong snapshot wrote it, too: plan for it if that is wrong as well"
                self._walk.limits.add_snapshot(LimitReason.UNKNOWN_EFFECT, key, write.snapshot, detail)

    def add_behind_unversioned(self) -> None:
        """Name the tables that are made from what has no snapshots: which of its rows they have isn't known."""
        connection = self._walk.connection
        for table in self._tables.order:
            if table.writes:
                continue
            around = find_reachable_tables(connection, table.key, up=False, depth=_DEPTH)
            if around.is_cut:
                self._walk.limits.add(LimitReason.CUT, table.dataset.label, "it is made into more tables than that")
            for key in around.depths.keys() - self._tables.tables.keys() - {around.start}:
                detail = f"it is made from {table.dataset.label}, which has no snapshots: it may be wrong, too"
                self._walk.limits.add_snapshot(LimitReason.UNKNOWN_SNAPSHOT, key, None, detail)

    def add_unclear(self) -> None:
        """Name later commits that may have read anything."""
        around = find_reachable_tables(self._walk.connection, self._tables.source, up=False, depth=_DEPTH)
        found, is_cut = unclear_writes(self._walk.connection, self._since, list(around.eras))
        known = {id_ for table in self._tables.tables.values() for id_ in table.ids}
        for write, opaque in found:
            if write.dataset is None or write.id in known or write.job[0] == VALIDATION_JOB_NAMESPACE or write.hidden:
                continue
            by = f" by {format_job_key(write.job)}" if write.job[1] else ""
            key = self._walk.identities.one(write.dataset, write.generation)
            if opaque is not None:
                detail = f"it was made{by} from what Spark doesn't show: {opaque}"
                self._walk.limits.add_snapshot(LimitReason.OPAQUE, key, write.snapshot, detail)
            else:
                detail = f"what it was made from{by} isn't known"
                self._walk.limits.add_snapshot(LimitReason.UNKNOWN_SOURCES, key, write.snapshot, detail)
        if is_cut:
            self._walk.limits.add(LimitReason.CUT, "commits", "more of them may have read anything than are named here")

    def all(self, now: datetime | None) -> tuple[AnswerLimit, ...]:
        """Return all limits, gaps since the wrong snapshot among them."""
        connection, collected = self._walk.connection, self._walk.limits
        tables = {key: table.dataset for key, table in self._tables.tables.items()}
        runs = {write.run for table in self._tables.tables.values() for write in table.writes}
        known = LimitCollector()
        add_known_limits(connection, tables, runs, known)
        others = [limit for limit in known.as_limits(tables) if limit.why is not LimitReason.GAP]
        places = {dataset.place for dataset in tables.values()}
        missing = gaps(connection, since=moment_of(self._since), now=now)
        for gap in missing:
            if gap.dataset is None or gap.dataset in places:
                about = gap.job or gap.application or gap.dataset or "a producer"
                collected.add(LimitReason.GAP, about, ": ".join(filter(None, (gap.reason, gap.detail))))
        names = load_datasets(connection, {*collected.datasets} - tables.keys()) | tables
        return (*collected.as_limits(names), *others, *missing.limits)
