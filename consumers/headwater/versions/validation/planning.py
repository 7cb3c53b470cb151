"""Finds in a store's lineage how a snapshot is made again: what is pinned, redirected, copied and compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, select

from headwater.errors import ConfigurationError
from headwater.events.clock import moment_of
from headwater.events.names import JobName
from headwater.events.scalars import Format
from headwater.lineage.questions.completeness import gaps
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.gaps import GapCause
from headwater.lineage.questions.known_limits import add_known_limits
from headwater.lineage.questions.names import find
from headwater.lineage.questions.snapshots import format_job_key
from headwater.lineage.questions.start_points import StartSelector, find_start
from headwater.lineage.questions.traversal.context import Basis, TraversalContext, is_range
from headwater.lineage.questions.traversal.limits import LimitCollector
from headwater.lineage.questions.traversal.snapshot_rows import (
    SnapshotRead,
    SnapshotWrite,
    load_reads_of_commits,
    load_writes_of_commits,
)
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import table_of
from headwater.versions.validation.model import (
    ComparedRows,
    PinnedInput,
    RedirectedOutput,
    ResultStart,
    UnvalidatableError,
    ValidationPlan,
)

PINNABLE: Final = frozenset({Format.ICEBERG.value, Format.DELTA.value, Format.PAIMON.value})
"""Formats whose tables a lens pins, and whose results can be made."""
_KEEPS_ROWS: Final = frozenset({"COMPACT", "ANALYZE", "VACUUM", "ALTER"})
_ADDS: Final = "APPEND"
_REPEATABLE: Final = frozenset({_ADDS, "OVERWRITE", "DELETE", "UPDATE", "MERGE", "REPLACE", "CREATE", "TRUNCATE"})
_HOLES: Final = frozenset({GapCause.MISSING_SEQUENCE, GapCause.PARTS})
_MOST_COMMITS: Final = 10_000


def plan_validation(
    connection: Connection,
    sink: str,
    *,
    pins: Mapping[str, str] | None = None,
    allowed: Collection[str] = (),
    anyway: bool = False,
) -> ValidationPlan:
    """Return how the job is run again that made a snapshot, `"lake.dws.daily@8"`.

    `pins` names versions of tables that lineage doesn't know, and `allowed` tables and paths that are read as they are
    now. With `anyway` gaps in lineage and inputs that Spark doesn't show become notes. An UnvalidatableError lists all
    that stands in the way.
    """
    named = find(connection, sink)
    if named.column is not None or named.snapshot is None:
        raise ConfigurationError(f"which snapshot of {sink}? Write it as TABLE@SNAPSHOT, such as lake.dws.daily@8")
    walk = TraversalContext(connection)
    start = find_start(walk, named.dataset, StartSelector(named.snapshot), Basis.COMMIT)
    label = f"{named.dataset.label}@{named.snapshot}"
    search = _Search(connection, walk, label, pins or {}, allowed, is_forced=anyway)
    return search.plan(search.known_write(start.writes, named.dataset))


@dataclass
class _Search:
    """Collects what stands in the way of one validation, and what doesn't."""

    connection: Connection
    walk: TraversalContext
    label: str
    pins: Mapping[str, str]
    allowed: Collection[str]
    is_forced: bool
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    names: dict[bytes, Dataset] = field(default_factory=dict)

    def known_write(self, writes: Sequence[SnapshotWrite], dataset: Dataset) -> SnapshotWrite:
        """Return the write of the snapshot; an UnvalidatableError if nobody knows what it was made from."""
        if not writes:
            raise UnvalidatableError(self.label, ["nobody reported who wrote it, so what it was made from isn't known"])
        write = writes[0]
        if write.hidden:
            raise UnvalidatableError(self.label, ["its lineage was deleted or has expired"])
        if write.evidence is not None:
            why = f"its commit is known from the log of {dataset.label} alone ({write.evidence}), and not what it read"
            raise UnvalidatableError(self.label, [why])
        if write.commit_id is None:
            raise UnvalidatableError(self.label, [f"it was made by {write.kind}, not by a job that wrote rows"])
        return write

    def plan(self, write: SnapshotWrite) -> ValidationPlan:
        job = _JobCommits.load(self.connection, write)
        self._refuse_streams(job)
        sink_key = self._identity(write.dataset, write.generation)
        self._name(job)
        outputs = {
            key: output
            for key, of_table in self._by_table(job.writes).items()
            if (output := self._output(key, of_table, job, is_sink=key == sink_key)) is not None
        }
        inputs = self._inputs(job, write, outputs)
        self._add_gaps(job)
        sink = outputs.get(sink_key)
        rows = ComparedRows.ALL if sink is None else self._compared(sink, write, job, sink_key)
        if self.problems or sink is None:
            raise UnvalidatableError(self.label, list(dict.fromkeys(self.problems)))
        return ValidationPlan(
            sink=sink,
            snapshot=write.snapshot or 0,
            rows=rows,
            inputs=inputs,
            outputs=tuple(outputs.values()),
            job=format_job_key(write.job),
            run=None if write.run is None else write.run.hex(),
            allowed=tuple(self.allowed),
            notes=tuple(dict.fromkeys(self.notes)),
        )

    def _refuse_streams(self, job: _JobCommits) -> None:
        if job.is_stream:
            why = "a stream's micro-batch made it, and streams can't be pinned: validate batch jobs"
            raise UnvalidatableError(self.label, [why])
        if job.is_cut:
            why = f"its application made more than {_MOST_COMMITS:,} commits, which is no script that can run again"
            raise UnvalidatableError(self.label, [why])

    def _name(self, job: _JobCommits) -> None:
        refs = [(each.dataset, each.generation) for each in job.writes]
        refs += [(each.dataset, each.generation) for each in job.reads]
        keys = {self._identity(*each) for each in refs if each[0] is not None}
        keys |= {dataset for dataset, _ in refs if dataset is not None}
        self.names = load_datasets(self.connection, keys)

    def _identity(self, dataset: bytes | None, generation: str | None) -> bytes:
        return b"" if dataset is None else self.walk.identities.one(dataset, generation)

    def _by_table(self, writes: Iterable[SnapshotWrite]) -> dict[bytes, list[SnapshotWrite]]:
        found: dict[bytes, list[SnapshotWrite]] = {}
        for each in writes:
            found.setdefault(self._identity(each.dataset, each.generation), []).append(each)
        return found

    # outputs

    def _output(
        self, key: bytes, writes: Sequence[SnapshotWrite], job: _JobCommits, *, is_sink: bool
    ) -> RedirectedOutput | None:
        """Return where a table's writes are redirected; None, with a problem, if they can't be."""
        name = next((full for each in reversed(writes) if (full := _full_name(each.name)) is not None), None)
        label = self.names[key].label if key in self.names else "something that Spark doesn't show"
        if name is None or writes[0].format not in PINNABLE:
            if is_sink or not self._is_allowed(name or label):
                why = "it is written by its path alone" if name is None else f"a table of {writes[0].format} can't be"
                self.problems.append(f"{label} can't be redirected: {why}; name it by --allow to let it be written")
            return None
        changing = [each for each in writes if each.kind not in _KEEPS_ROWS]
        if strange := [each.kind for each in changing if each.kind not in _REPEATABLE]:
            self.problems.append(f"{label} was changed by {strange[0]}, which isn't run again")
        if any(each.branch for each in writes):
            self.problems.append(f"{label} was written on the branch {writes[0].branch}, which isn't redirected")
        if any(each.snapshot is None for each in changing):
            self.problems.append(f"which snapshot of {label} the job made isn't known: {writes[0].candidates or '?'}")
        commits = tuple((each.parent, each.snapshot) for each in changing if each.snapshot is not None)
        return RedirectedOutput(
            table=name,
            format=writes[0].format,
            generation=writes[0].generation,
            commits=commits,
            start=self._start(key, changing, job),
        )

    def _start(self, key: bytes, writes: Sequence[SnapshotWrite], job: _JobCommits) -> ResultStart:
        if job.creates(self.connection, [each.dataset for each in writes]):
            return ResultStart.ABSENT
        if not writes or writes[0].parent is None:
            return ResultStart.EMPTY
        made = {each.snapshot for each in writes}
        reads_before = any(
            self._identity(each.dataset, each.generation) == key and each.snapshot not in made for each in job.reads
        )
        adds_only = all(each.kind == _ADDS and each.replaced == "NOTHING" for each in writes)
        is_empty = not reads_before and (adds_only or writes[0].restarts)
        return ResultStart.EMPTY if is_empty else ResultStart.COPY

    def _compared(self, sink: RedirectedOutput, write: SnapshotWrite, job: _JobCommits, key: bytes) -> ComparedRows:
        made = [snapshot for _, snapshot in sink.commits]
        if write.snapshot in made and made[-1] != write.snapshot:
            self.problems.append(
                f"the same job wrote {sink.table} again after that: validate {sink.table}@{made[-1]}, its last snapshot"
            )
        writes = [each for each in self._by_table(job.writes)[key] if each.kind not in _KEEPS_ROWS]
        if sink.start is ResultStart.EMPTY and writes and not writes[0].restarts and sink.before is not None:
            return ComparedRows.ADDED
        since = next((n for n in range(len(writes) - 1, -1, -1) if writes[n].restarts), 0)
        for before, after in zip(writes[since:], writes[since + 1 :], strict=False):
            if after.parent is not None and after.parent != before.snapshot and not self._is_kept(after, job):
                self.problems.append(
                    f"another job wrote {sink.table} between its snapshots {before.snapshot} and {after.snapshot}, so "
                    "all of its rows can't be compared"
                )
        return ComparedRows.ALL

    def _is_kept(self, write: SnapshotWrite, job: _JobCommits) -> bool:
        """Return whether a commit stands on one of the same job that changed no rows."""
        return any(each.snapshot == write.parent and each.kind in _KEEPS_ROWS for each in job.writes)

    # inputs

    def _inputs(
        self, job: _JobCommits, write: SnapshotWrite, outputs: Mapping[bytes, RedirectedOutput]
    ) -> tuple[PinnedInput, ...]:
        found: dict[bytes, list[SnapshotRead]] = {}
        for each in job.reads:
            if each.dataset is None:
                self._add_opaque(each)
                continue
            key = self._identity(each.dataset, each.generation)
            if key not in outputs:
                found.setdefault(key, []).append(each)
        pinned = [self._pin(key, reads, write) for key, reads in found.items()]
        given = [PinnedInput(table=name, names=(name,), snapshot=version) for name, version in self.pins.items()]
        known = [each for each in pinned if each is not None]
        return (*sorted(known, key=lambda each: each.table), *given)

    def _pin(self, key: bytes, reads: Sequence[SnapshotRead], write: SnapshotWrite) -> PinnedInput | None:
        dataset = self.names.get(key) or self.names[reads[0].dataset or b""]
        names = tuple(dict.fromkeys(_names_of(reads, [dataset, *self._other_places(reads)])))
        if any(each in self.pins for each in names) or any(map(self._is_allowed, names)):
            return None
        why = self._why_unpinnable(reads)
        own = [each for each in reads if each.commit_id == write.commit_id] or reads
        snapshots = list(dict.fromkeys(each.snapshot for each in own))
        if why is None and len(snapshots) > 1:
            why = f"it was read at {' and at '.join(map(str, snapshots))}: choose one by --pin {dataset.label}@SNAPSHOT"
        if why is not None:
            self.problems.append(f"{dataset.label} can't be pinned: {why}")
            return None
        if others := sorted({str(each.snapshot) for each in reads if each.snapshot != snapshots[0]}):
            other = f"another statement of the job read {dataset.label} at {', '.join(others)}"
            self.notes.append(f"{other}, and reads it at {snapshots[0]} now")
        return PinnedInput(
            table=dataset.label,
            names=names,
            snapshot=str(snapshots[0]),
            format=reads[0].format,
            generation=own[0].generation,
        )

    def _why_unpinnable(self, reads: Sequence[SnapshotRead]) -> str | None:
        allow = "name it by --allow to have it read as it is now"
        for each in reads:
            if each.hidden:
                return "what was read of it was deleted from the store"
            if each.format not in PINNABLE:
                return f"no lens pins what is read from {each.format or 'a source of unknown format'}; {allow}"
            if is_range(each):
                return f"the job read changes of it, and not the table at a version; {allow}"
            if each.branch is not None:
                return f"it was read on the branch {each.branch}, which may have moved; {allow}"
            if each.snapshot is None:
                known = f": one of {each.candidates.strip('[]')}" if each.candidates else ""
                return f"which snapshot was read isn't known{known}; choose one by --pin TABLE@SNAPSHOT"
        return None

    def _other_places(self, reads: Sequence[SnapshotRead]) -> list[Dataset]:
        return [self.names[each.dataset] for each in reads if each.dataset in self.names]

    def _is_allowed(self, name: str) -> bool:
        return name in self.allowed or "*" in self.allowed

    def _add_opaque(self, read: SnapshotRead) -> None:
        name = _full_name(read.name)
        if name is not None and (name in self.pins or self._is_allowed(name)):
            return
        what = name or read.opaque or "something"
        self._add_doubt(f"the job read {what}, of which Spark shows no table or version")

    def _add_gaps(self, job: _JobCommits) -> None:
        limits = LimitCollector()
        runs = {each.run for each in job.writes if each.run is not None}
        add_known_limits(self.connection, {}, runs, limits)
        for each in limits.as_limits({}):
            if each.why.value == "GAP":
                self._add_doubt(f"lineage of the run has a gap: {each.detail or each.about}")
        for job_key in {each.job for each in job.writes if each.job[1] is not None}:
            name = JobName(namespace=job_key[0], name=job_key[1] or "")
            for gap in gaps(self.connection, job=name, since=moment_of(job.began), until=moment_of(job.ended)):
                if gap.cause in _HOLES:
                    self._add_doubt(f"lineage of the run has a gap: {gap.detail}")
        if any(each.made_from == "UNKNOWN" for each in job.writes) and not job.reads:
            self._add_doubt("it is unknown what one of the job's commits read")

    def _add_doubt(self, text: str) -> None:
        if self.is_forced:
            self.notes.append(text)
        else:
            self.problems.append(f"{text}; --anyway runs it nevertheless")


@dataclass
class _JobCommits:
    """All commits of the application that made a snapshot, the oldest first: its script makes all of them again."""

    writes: list[SnapshotWrite]
    reads: list[SnapshotRead]
    began: int
    ended: int
    is_stream: bool
    is_cut: bool

    @classmethod
    def load(cls, connection: Connection, write: SnapshotWrite) -> _JobCommits:
        commit, run = table_of(t.COMMIT).c, table_of(t.RUN).c
        own = select(commit.application, commit.batch_id).where(
            commit.id == write.commit_id, commit.barrier == write.barrier
        )
        facts = connection.execute(own).one()
        runs = set() if write.run is None else {write.run}
        if facts.application is not None:
            of_application = select(run.run).where(run.application == facts.application)
            runs |= {bytes(each) for each in connection.scalars(of_application)}
        chosen = select(commit.id, commit.barrier, commit.committed_at, commit.batch_id)
        found = [(write.commit_id, write.barrier)] if not runs else []
        rows: list[Any] = []
        for each in select_by_keys(connection, chosen.limit(_MOST_COMMITS + 1), commit.run, runs):
            rows.append(each)
            found.append((bytes(each.id), each.barrier))
        keys = [(each, barrier) for each, barrier in found if each is not None]
        is_cut = len(keys) > _MOST_COMMITS
        writes = [] if is_cut else list(load_writes_of_commits(connection, keys))
        times = [each.committed_at for each in rows if each.committed_at is not None] or [write.at]
        started = connection.scalars(select(run.started_at).where(run.run.in_(runs), run.started_at.is_not(None)))
        return cls(
            sorted(writes, key=lambda each: (each.barrier, each.at, each.kind in _KEEPS_ROWS)),
            [] if is_cut else list(load_reads_of_commits(connection, keys)),
            min([*started, *times]),
            max(times),
            facts.batch_id is not None,
            is_cut,
        )

    def creates(self, connection: Connection, datasets: Sequence[bytes | None]) -> bool:
        """Return whether a table was made while the job ran, so that its script makes it."""
        change = table_of(t.MODIFICATION).c
        found = select(change.id).where(
            change.dataset.in_([each for each in datasets if each is not None]),
            change.kind == "CreateTable",
            change.effect == "APPLIED",
            change.time >= self.began,
            change.time <= self.ended,
        )
        return connection.scalar(found.limit(1)) is not None


def _names_of(reads: Sequence[SnapshotRead], datasets: Sequence[Dataset]) -> Iterator[str]:
    """Yield the names by which a script may read a table: those that it was read by, then others, and its paths."""
    for read in reads:
        if (name := _full_name(read.name)) is not None:
            yield name
    for each in datasets:
        yield from (name for name in each.known_as if name.count(".") > 1)
        yield from _paths_of(each)


def _paths_of(dataset: Dataset) -> Iterator[str]:
    scheme, slashes, host = dataset.namespace.partition("://")
    if scheme == "file":
        yield f"/{dataset.name.strip('/')}"
    elif slashes and "/" not in host:
        schemes = ("s3", "s3a", "s3n") if scheme.startswith("s3") else (scheme,)
        yield from (f"{each}://{host}/{dataset.name.strip('/')}" for each in schemes)


def _full_name(name: tuple[str | None, str | None, str | None]) -> str | None:
    return ".".join(part for part in name if part) if all(name) else None
