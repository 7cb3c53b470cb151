"""Aligned jobs on mirrors: within a job's process, what plays their barriers in place of their queries.

A job plays the data versions of its group again, from the first one that has something wrong, and reads the mirrors in
them. It has a checkpoint of its own below that of production, with marks of its own, and claims nothing. What it has
played stays played while its mirrors only grow; else it begins anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from headwater.lineage.store import Store
from headwater.listeners import job
from headwater.versions.aligned.batch import BarrierSinks
from headwater.versions.aligned.checkpoints import Barrier, Checkpoint, JobStart
from headwater.versions.aligned.claims import GroupClaims
from headwater.versions.aligned.corrected_batch import CorrectedBatch
from headwater.versions.aligned.formats import TableLooker
from headwater.versions.aligned.formats.protocol import AlignableTable
from headwater.versions.correction.execution.mirrored_cuts import (
    BarrierPlanner,
    Milestone,
    MirroredSink,
    MirroredSource,
    milestones_of_source,
)
from headwater.versions.correction.execution.redirects import mirrors_of
from headwater.versions.correction.execution.tables import CorrectionError, Mirror
from headwater.versions.correction.journal import Correction, CorrectionJournal
from headwater.versions.correction.model import JobKind, PlannedJob
from headwater.versions.correction.moved_jobs import mirrored_checkpoint
from headwater.versions.cuts import TableSnapshot
from headwater.versions.spark_tables import identify
from headwater.versions.step_journal import JournalStep, StepKind, StepState, TakenOverError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.versions.aligned.loop import BarrierFunction, QuerySettings
    from headwater.versions.aligned.repetition import StoreOpener

_MOST_VERSIONS: Final = 1_000_000


@dataclass(frozen=True)
class AlignedRerun:
    """An aligned job that runs on mirrors, as the journal keeps it."""

    job: str
    group: str
    checkpoint: str
    """Of production's job."""

    @classmethod
    def of(cls, planned: PlannedJob) -> AlignedRerun:
        assert planned.group is not None  # noqa: S101 - of an aligned job
        assert planned.checkpoint is not None  # noqa: S101 - looked for before anything was made
        return cls(planned.job, planned.group, planned.checkpoint)

    def to_detail(self) -> dict[str, str]:
        return asdict(self)

    def mirrored(self, correction: str) -> Checkpoint:
        """Return the checkpoint of the job on the mirrors."""
        return mirrored_checkpoint(self.checkpoint, correction)


def aligned_reruns(jobs: Iterable[PlannedJob]) -> list[AlignedRerun]:
    return [AlignedRerun.of(each) for each in jobs if each.kind is JobKind.ALIGNED]


def reruns_of(step: JournalStep) -> list[AlignedRerun]:
    """Return the aligned jobs that a step of the journal runs."""
    return [AlignedRerun(**each) for each in step.detail.get("aligned", ())]


def check_played(rerun: AlignedRerun, correction: str, since: int) -> None:
    """Raise a CorrectionError if an aligned job hasn't played its barriers, although its command has ended."""
    start, newest = rerun.mirrored(correction).start(), rerun.mirrored(correction).newest()
    if start is None or start.requested != _request(since):
        raise CorrectionError(
            f"the command of {rerun.job} didn't run the aligned query {rerun.job} of the group {rerun.group}: let "
            "correction.toml name one that does"
        )
    if newest is not None and not newest.is_committed:
        raise CorrectionError(
            f"{rerun.job} has ended, and didn't play data version {newest.number} to its end: run the correction again"
        )


class MirroredJobs:
    """Stands in for the queries of a job's process. Those that the correction doesn't run do nothing."""

    def __init__(self, correction: str) -> None:
        self._correction: Final = correction

    def play(self, settings: QuerySettings, spark: SparkSession, step: BarrierFunction, open_store: StoreOpener) -> int:
        """Run the function on the barriers that are left to play."""
        with ExitStack() as held:
            store = open_store(held)
            found = CorrectionJournal(store, self._correction).load()
            running = [each for each in found.of(StepKind.RERUN) if each.state is StepState.RUNNING]
            for rerun in reruns_of(running[-1]) if running else ():
                if (rerun.job, rerun.group) == (settings.name, settings.group):
                    held.enter_context(job(settings.name))
                    return _MirroredRun(settings, spark, store, found=found, step=running[-1], rerun=rerun).play(step)
            return 0


class _MirroredRun:
    """One run of one aligned job on the mirrors."""

    def __init__(
        self,
        settings: QuerySettings,
        spark: SparkSession,
        store: Store,
        *,
        found: Correction,
        step: JournalStep,
        rerun: AlignedRerun,
    ) -> None:
        self._settings: Final = settings
        self._spark: Final = spark
        self._store: Final = store
        self._found: Final = found
        self._step: Final = step
        self._production: Final = Checkpoint(rerun.checkpoint)
        self._checkpoint: Final = rerun.mirrored(found.name)
        self._looker: Final = _MirrorLooker(spark, mirrors_of(found))
        self._mirrored: Final = [source for table in self._tables if (source := self._source(table)) is not None]
        self._last: Barrier | None = None

    @property
    def _tables(self) -> list[str]:
        return list(dict.fromkeys(self._settings.sources.values()))

    def play(self, step: BarrierFunction) -> int:
        production = self._production.start()
        if production is None:
            raise CorrectionError(
                f"there is no checkpoint of {self._settings.name} at {self._production.location}, as far as this "
                "machine sees: run the correction where the job runs"
            )
        barriers = self._production.barriers()
        first = self._planner(barriers).first(barriers)
        versions = GroupClaims(self._store, self._settings.group).versions_from(first.number, _MOST_VERSIONS)
        start = self._start(first)
        planned = self._planner(barriers).planned(versions, self._last, self._heads())
        count = 0
        for number, cut in planned:
            count += 1
            self._check_owner()
            before = first.before if self._last is None else self._last.cut
            self._keep(Barrier(number, cut, before, is_committed=False))
            self._play(step, start)
        return count

    def _start(self, first: Barrier) -> JobStart:
        """Return where the job begins on the mirrors, and find how far it is. It begins anew, if they were set back."""
        since = _request(self._step.detail["since"])
        start = self._checkpoint.start()
        if start is None or start.requested != since:
            shutil.rmtree(self._checkpoint.location, ignore_errors=True)
            settings = self._settings
            tables = dict(settings.sources)
            start = JobStart(settings.name, settings.group, tables, first.number, first.before, since, str(uuid4()))
            self._checkpoint.write_start(start)
        self._last = self._checkpoint.newest()
        return start

    def _play(self, step: BarrierFunction, start: JobStart) -> None:
        barrier = self._last
        assert barrier is not None  # noqa: S101 - it was kept
        names = {source.table: source.mirror.name for source in self._mirrored}
        read = {
            source: names[table] if names.get(table) in barrier.cut.snapshots else table
            for source, table in self._settings.sources.items()
        }
        batch = CorrectedBatch(
            self._spark,
            self._looker,
            number=barrier.number,
            cut=barrier.cut,
            before=barrier.before,
            tables=read,
            overwrites=self._settings.overwrites,
            sinks=BarrierSinks(self._looker, start.mark_prefix, barrier.number, barrier.sinks, self._remember),
            originals={name: table for table, name in names.items()},
        )
        step(batch)
        self._keep(self._last.commit() if self._last is not None else barrier.commit())

    def _remember(self, sinks: Mapping[str, int | None]) -> None:
        self._check_owner()
        assert self._last is not None  # noqa: S101 - it was kept
        self._keep(replace(self._last, sinks=dict(sinks)))

    def _check_owner(self) -> None:
        """Stop, if another process has taken the correction over: it begins its jobs anew."""
        if CorrectionJournal(self._store, self._found.name).epoch() != self._found.status.epoch:
            raise TakenOverError(f"another process works on {self._found.name}: this job stops")

    def _keep(self, barrier: Barrier) -> None:
        self._checkpoint.write(barrier)
        self._last = barrier

    def _planner(self, barriers: Iterable[Barrier]) -> BarrierPlanner:
        names = dict.fromkeys(key.rpartition(" ")[0] for barrier in barriers for key in barrier.sinks)
        sinks = [sink for name in names if (sink := self._sink(name)) is not None]
        return BarrierPlanner(_Lines(self._looker), self._tables, self._mirrored, sinks)

    def _source(self, table: str) -> MirroredSource | None:
        mirror = self._looker.mirror_of(table)
        if mirror is None:
            return None
        planned = next(each for each in self._found.plan.tables if each.table == mirror.table)
        head = self._looker.source(mirror.name).newest()
        if head is None:
            raise CorrectionError(f"the mirror {mirror.name} has no snapshot any more: abort the correction")
        milestones: tuple[Milestone, ...]
        if planned.is_source:
            milestones = milestones_of_source(self._found, mirror, head)
        else:
            heads: Mapping[str, int | None] = self._step.detail["heads"]
            at = heads.get(mirror.table)
            milestones = () if at is None else ((at, head),)
        return MirroredSource(table, mirror, milestones, frozenset(planned.snapshots))

    def _sink(self, name: str) -> MirroredSink | None:
        mirror = self._looker.mirror_of(name)
        if mirror is None:
            return None
        planned = next(each for each in self._found.plan.tables if each.table == mirror.table)
        return MirroredSink(name, mirror, planned.starts_at is None)

    def _heads(self) -> dict[str, int] | None:
        """Return the newest snapshots of the mirrors that are read, if this is the last run before the switch."""
        if not self._step.detail.get("final"):
            return None
        found = {source.mirror.name: self._looker.source(source.mirror.name).newest() for source in self._mirrored}
        return {name: head for name, head in found.items() if head is not None}


class _MirrorLooker(TableLooker):
    """Looks at mirrors where a job names their tables as what it writes."""

    def __init__(self, spark: SparkSession, mirrors: Mapping[str, Mirror]) -> None:
        super().__init__(spark)
        self._session: Final = spark
        self._mirrors: Final = mirrors
        self._known: Final[dict[str, Mirror | None]] = {}

    def sink(self, name: str) -> AlignableTable | None:
        mirror = self.mirror_of(name)
        return super().sink(name if mirror is None else mirror.name)

    def mirror_of(self, name: str) -> Mirror | None:
        """Return the mirror of a table by the name that the job has for it."""
        if name not in self._known:
            catalog, identifier = identify(self._session, name)
            full = ".".join([str(catalog.name()), *map(str, identifier.namespace()), str(identifier.name())])
            self._known[name] = self._by_name.get(full.lower())
        return self._known[name]

    @cached_property
    def _by_name(self) -> dict[str, Mirror]:
        return {table.lower(): mirror for table, mirror in self._mirrors.items()}


class _Lines:
    """The lines of the session's tables."""

    def __init__(self, looker: TableLooker) -> None:
        self._looker = looker
        self._after: dict[tuple[str, int], tuple[int, ...]] = {}

    def is_at_or_before(self, table: str, snapshot: TableSnapshot, later: int) -> bool:
        if snapshot.snapshot == later:
            return True
        key = (table, snapshot.snapshot)
        if key not in self._after:
            found = self._looker.source(table).commits_after(snapshot)
            self._after[key] = tuple(commit.snapshot for commit in found or ())
        return later in self._after[key]

    def at(self, name: str, snapshot: int) -> TableSnapshot:
        return self._looker.source(name).at(snapshot)


def _request(since: int) -> str:
    return f"step {since} of the correction"
