"""One run of an aligned job: claim or take the next data version, run the user's function on it, commit, go on.

Reports a run of an aligned job, with where it begins to read: the PIP-5 table `job_startup` shows that.

In a driver with headwater's listeners they report it, like any run. In one without, it goes into the store directly.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid4

from headwater.errors import ConfigurationError
from headwater.events.clock import uuid7
from headwater.events.envelope import Event
from headwater.events.jobs import (
    ErrorDetails,
    JobStarted,
    JobStatus,
    JobStatusChanged,
    JobType,
    RunScope,
    StartPosition,
)
from headwater.events.names import JobName
from headwater.events.producer import Producer
from headwater.lineage.mapping import map_event
from headwater.lineage.store import Store
from headwater.listeners import job
from headwater.versions.aligned.batch import AlignedBatch, BarrierSinks, OverwritePolicy
from headwater.versions.aligned.checkpoints import Barrier, Checkpoint, CheckpointError, JobStart
from headwater.versions.aligned.claims import (
    DataVersionConflictError,
    FencedGroupError,
    GroupClaims,
    JobTakenOverError,
)
from headwater.versions.aligned.fences import JobFence
from headwater.versions.aligned.formats import TableLooker
from headwater.versions.aligned.formats.protocol import UnmarkedWriteError
from headwater.versions.aligned.proposals import CutProposer
from headwater.versions.aligned.starts import contained_cut, start_positions
from headwater.versions.cuts import Cut, DataVersion

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_LOG: Final = logging.getLogger(__name__)


@contextmanager
def report_run(store: Store, name: str, starts_at: tuple[StartPosition, ...]) -> Generator[None]:
    """Report that a job runs inside the block, and how it ended."""
    with job(name, starts_at=starts_at) as entry:
        if entry.run is not None:
            yield
            return
        own = _StoredRun(store, name)
        own.begin(starts_at)
        try:
            yield
        except BaseException as e:
            own.end(JobStatus.FAILED if isinstance(e, Exception) else JobStatus.KILLED, e)
            raise
        own.end(JobStatus.FINISHED, None)


class _StoredRun:
    """A run whose events go into the store."""

    def __init__(self, store: Store, name: str) -> None:
        self._store: Final = store
        self._job: Final = JobName(name=name)
        self._run: Final[UUID] = uuid7()
        self._producer: Final = Producer()

    def begin(self, starts_at: tuple[StartPosition, ...]) -> None:
        start = JobStarted(
            job=self._job, run=self._run, job_type=JobType.STREAMING, scope=RunScope.BLOCK, starts_at=starts_at
        )
        self._emit(start)
        self._emit(JobStatusChanged(job=self._job, run=self._run, status=JobStatus.RUNNING))

    def end(self, status: JobStatus, error: BaseException | None) -> None:
        details = None if error is None else ErrorDetails(type=f"{type(error).__module__}.{type(error).__qualname__}")
        self._emit(JobStatusChanged(job=self._job, run=self._run, status=status, error=details))

    def _emit(self, draft: Event) -> None:
        self._producer.emit(draft, lambda event, _: self._store.merge(map_event(event)))


BarrierFunction = Callable[[AlignedBatch], object]


@dataclass(frozen=True)
class QuerySettings:
    """What an aligned query was asked to do."""

    group: str
    name: str
    sources: Mapping[str, str]
    checkpoint: Checkpoint
    start: str | int
    snapshots_per_barrier: int
    overwrites: Mapping[str, OverwritePolicy]


class JobLoop:
    """One run of an aligned query, barrier by barrier."""

    def __init__(self, query: QuerySettings, spark: SparkSession, store: Store) -> None:
        self._query: Final = query
        self._spark: Final = spark
        self._store: Final = store
        self._claims: Final = GroupClaims(store, query.group)
        self._checkpoint: Final = query.checkpoint
        self._tables: Final = query.sources
        self._looker: Final = TableLooker(spark)
        self._epoch = 0
        self._is_new = False
        self._committed = 0
        """The newest data version that the store knows this job to have committed: its checkpoint may be older."""
        self._begin: JobStart | None = None
        self._last: Barrier | None = None
        self._proposer: CutProposer | None = None
        self._is_fenced = False

    def begin(self, held: ExitStack) -> None:
        """Enter the group, find where to go on, and let older processes of this job be refused."""
        group = self._claims.enter(set(self._tables.values()))
        self._proposer = CutProposer(self._looker, self._store, group.tables, self._query.snapshots_per_barrier)
        done = {claim.job: claim.done for claim in self._claims.jobs()}
        self._is_new = self._checkpoint.start() is None
        self._committed = 0 if self._is_new else done.get(self._query.name) or 0
        self._epoch = self._claims.take_over(self._query.name, self._checkpoint.location)
        self._begin = self._known_start()
        self._last = self._checkpoint.newest()
        if self._last is not None:
            self._claims.confirm(self._last.number, self._last.cut, self._query.name)
        position = self._last.cut if self._last is not None else self._first_position()
        starts_at = () if position is None else start_positions(self._store, self._only_read(position))
        held.enter_context(report_run(self._store, self._query.name, starts_at))

    def play(self, step: BarrierFunction, barrier: Barrier) -> bool:
        """Run the function on a barrier that `next_barrier` returned, and commit it. Return whether it was played: not
        if a fence stands."""
        name = self._query.name
        self._claims.move(name, self._epoch, done=self._done(), running=barrier.number)
        if self._stops_at_fence():  # looked for behind the move, which whoever sets a fence looks for
            self._claims.move(name, self._epoch, done=self._done(), running=None)
            return False
        if barrier is not self._last:
            self._keep(barrier)
        self._run_step(step, barrier)
        assert self._last is not None  # noqa: S101 - it was kept
        self._claims.move(name, self._epoch, done=barrier.number, running=None)
        self._keep(self._last.commit())
        return True

    def _stops_at_fence(self) -> bool:
        """Return whether a fence stands. A barrier that was begun is played to its end, unless tables are switched."""
        fence = self._claims.fence()
        if fence is None or (self._is_begun and not fence.is_firm):
            return False
        self._note_fence(fence)
        return True

    @property
    def _is_begun(self) -> bool:
        return self._last is not None and not self._last.is_committed

    def _note_fence(self, fence: JobFence | FencedGroupError) -> None:
        if not self._is_fenced:
            _LOG.warning("the job %s stops between two barriers: %s", self._query.name, fence)
        self._is_fenced = True

    def _go_on(self) -> None:
        """Go on behind a fence: the switch may have given the job another barrier to go on from."""
        if not self._claims.is_current(self._query.name, self._epoch):
            raise JobTakenOverError(f"another process has started the job {self._query.name}: this one stops")
        self._begin, self._last, self._is_new = self._known_start(), self._checkpoint.newest(), False
        self._committed = {claim.job: claim.done for claim in self._claims.jobs()}.get(self._query.name) or 0
        self._is_fenced = False
        _LOG.warning("the job %s goes on", self._query.name)

    def _done(self) -> int | None:
        """Return the data version that was committed last."""
        last, begin = self._last, self._begin
        if last is None or begin is None:
            return self._committed or None
        done = max(last.number if last.is_committed else last.number - 1, self._committed)
        return done if done >= begin.first else None

    def _first_position(self) -> Cut | None:
        """Return the snapshots at which a new job begins: what it goes on from, or the first ones that it reads."""
        assert self._begin is not None  # noqa: S101 - found by `begin`
        if self._begin.after is not None:
            return self._begin.after
        found = self._find_or_claim(self._begin.first)
        return None if found is None else found.cut

    def _only_read(self, cut: Cut) -> Cut:
        return Cut({table: snapshot for table, snapshot in cut.snapshots.items() if table in self._tables.values()})

    def _run_step(self, step: BarrierFunction, barrier: Barrier) -> None:
        """Run the function, unless a write of the barrier before showed that it can't be done once."""
        assert self._begin is not None  # noqa: S101 - found by `begin`
        if barrier.fault is not None:
            raise UnmarkedWriteError(barrier.fault)
        sinks = BarrierSinks(
            self._looker,
            self._begin.mark_prefix,
            barrier.number,
            barrier.sinks,
            self._remember,
            is_new_job=self._is_new,
            was_committed=barrier.number <= self._committed,
        )
        batch = AlignedBatch(
            self._spark,
            self._looker,
            number=barrier.number,
            cut=barrier.cut,
            before=barrier.before,
            tables=self._tables,
            overwrites=self._query.overwrites,
            sinks=sinks,
        )
        try:
            step(batch)
        except UnmarkedWriteError as e:
            assert self._last is not None  # noqa: S101 - it was kept
            self._keep(replace(self._last, fault=str(e)))
            raise

    def _remember(self, sinks: Mapping[str, int | None]) -> None:
        """Write down where the sinks were, and refuse to write them if another process has taken over."""
        if not self._claims.is_current(self._query.name, self._epoch):
            raise JobTakenOverError(f"another process has started the job {self._query.name}: this one stops")
        assert self._last is not None  # noqa: S101 - it was kept
        self._keep(replace(self._last, sinks=sinks))

    def _keep(self, barrier: Barrier) -> None:
        self._checkpoint.write(barrier)
        self._last = barrier

    def next_barrier(self) -> Barrier | None:
        """Return the barrier that was begun and not committed, or the next one; None while there is none, or a fence
        stands."""
        if self._stops_at_fence():
            return None
        if self._is_fenced:
            self._go_on()
        assert self._begin is not None  # noqa: S101 - found by `begin`
        last = self._last
        if last is not None and not last.is_committed:
            return last
        found = self._find_or_claim(self._begin.first if last is None else last.number + 1)
        if found is None:
            return None
        before = self._begin.after if last is None else last.cut
        return Barrier(found.number, found.cut, before, is_committed=False)

    def _find_or_claim(self, number: int) -> DataVersion | None:
        """Return a data version. If nobody has claimed it, claim it for the cut after the one before it."""
        assert self._proposer is not None  # noqa: S101 - made by `begin`
        known = {version.number: version for version in self._claims.versions_from(number - 1, 2)}
        if number in known:
            return known[number]
        if max(known, default=0) > number:
            raise DataVersionConflictError(
                f"the store has no data version {number} of the group {self._query.group}, but later ones: it was set "
                "back. Start this job with a new checkpoint, at a data version that `headwater version list` shows"
            )
        if number > 1 and number - 1 not in known:
            return None
        cut = self._proposer.first() if number == 1 else self._proposer.after(known[number - 1].cut)
        try:
            return None if cut is None else self._claims.claim(number, cut, self._query.name)
        except FencedGroupError as e:
            self._note_fence(e)
            return None

    def _known_start(self) -> JobStart:
        """Return where the job begins, which is decided once for each checkpoint."""
        query, known = self._query, self._checkpoint.start()
        if known is not None:
            if (known.job, known.group, dict(known.tables)) != (query.name, query.group, dict(self._tables)):
                raise CheckpointError(
                    f"{self._checkpoint.location} is the checkpoint of the job {known.job} of the group {known.group} "
                    f"on {', '.join(sorted(known.tables.values()))}: give this one another checkpoint"
                )
            return known
        first, after = self._find_start(query.start)
        begin = JobStart(query.name, query.group, dict(self._tables), first, after, str(query.start), str(uuid4()))
        self._checkpoint.write_start(begin)
        return begin

    def _find_start(self, start: str | int) -> tuple[int, Cut | None]:
        newest = self._claims.newest()
        last = newest.number if newest else 0
        if isinstance(start, int):
            if not 1 <= start <= last + 1:
                raise ConfigurationError(
                    f"the group {self._query.group} has no data version {start}: its newest is {last}"
                )
            return start, None
        if start == "newest":
            return max(last, 1), None
        after = contained_cut(self._looker, self._store, start, self._tables)
        return self._first_after(after, last), after

    def _first_after(self, cut: Cut, last: int) -> int:
        """Return the first data version that has everything which a cut has."""
        for number in range(1, last + 1):
            version = self._claims.version(number)
            if version is not None and all(self._has(version.cut, table, cut) for table in cut.snapshots):
                return number
        return last + 1

    def _has(self, later: Cut, table: str, earlier: Cut) -> bool:
        if later[table] == earlier[table]:
            return True
        line = self._looker.source(table).commits_after(earlier[table])
        return line is not None and later[table].snapshot in [commit.snapshot for commit in line]
