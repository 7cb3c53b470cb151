"""Which versions a table contains, whether versions of tables belong together, and the newest ones that do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar, cast

from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.events.clock import moment_of
from headwater.lineage.client import Lineage
from headwater.lineage.questions.answers import AnswerLimit, micros_of_argument
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.known_limits import add_known_limits
from headwater.lineage.questions.names import ResolvedName, find_all
from headwater.lineage.questions.start_points import StartPoint, StartSelector, find_starts
from headwater.lineage.questions.traversal.context import Basis, TraversalContext
from headwater.lineage.questions.traversal.limits import LimitCollector
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef
from headwater.lineage.store import translate_errors
from headwater.versions.alignment import Alignment, AlignmentSearch, Candidates, Miss, NoAlignmentError
from headwater.versions.answers import (
    AlignedTable,
    AlignmentAnswer,
    ConsistencyAnswer,
    ContainedAnswer,
    ContainedVersion,
    SharedAncestor,
    TableAt,
)
from headwater.versions.consistency import SharedVersions, VersionComparison, compare
from headwater.versions.contents import ContentsReader
from headwater.versions.histories import TooNear
from headwater.versions.model import Doubt, Frontier, TableContents, Version
from headwater.versions.version_lines import VersionLines

P = ParamSpec("P")
T = TypeVar("T")
LOOK_BACK: Final = 1_000
"""How many versions of each table are tried."""


def _of_store(
    question: Callable[Concatenate[Connection, P], T],
) -> Callable[Concatenate[Lineage | Connection, P], T]:
    """Let a question be asked of an opened store, too."""

    @wraps(question)
    def ask(source: Lineage | Connection, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if isinstance(source, Connection):
            return question(source, *args, **kwargs)
        with translate_errors(source.store.target.words), source.store.engine.connect() as connection:
            return question(connection, *args, **kwargs)

    return cast("Callable[Concatenate[Lineage | Connection, P], T]", ask)


@_of_store
def contained(
    connection: Connection,
    table: str | Dataset,
    snapshot: int | None = None,
    *,
    branch: str | None = None,
    as_of: datetime | None = None,
) -> ContainedAnswer:
    """Return for each table upstream the newest version that is in a table at a snapshot, by each reader on the way."""
    question = _Question(connection, as_of)
    [ref] = question.starts([(table, snapshot)], branch)
    question.reader.histories.load([ref])
    state = question.reader.state(ref)
    question.name([state])
    rows = [question.contained(pair[0], frontier) for pair, frontier in state.contents.frontiers.items()]
    rows.sort(key=lambda each: (each.table.label, each.reader.label))
    limits = question.limits(state.contents.doubts)
    of = question.table_at(state.version)
    return ContainedAnswer(tuple(rows), complete_until(connection), limits, of=of)


@_of_store
def check(
    connection: Connection, tables: Mapping[str, int | None] | Sequence[str], *, as_of: datetime | None = None
) -> ConsistencyAnswer:
    """Return whether tables belong together at these versions: `["b@11", "c@15"]`, or `{"b": 11, "c": 15}`. A table
    without a version is meant at its newest one."""
    question = _Question(connection, as_of)
    named = tables.items() if isinstance(tables, Mapping) else ((each, None) for each in tables)
    refs = question.starts(list(named))
    question.refuse_twins(refs)
    question.reader.histories.leave_out_shared(refs)
    states = question.anew(lambda: question.loaded(refs))
    comparison = compare(states)
    question.name(states)
    return ConsistencyAnswer(
        question.shared(states, comparison),
        complete_until(connection),
        question.limits(comparison.doubts),
        tables=tuple(question.table_at(each.version) for each in states),
        is_consistent=comparison.is_consistent,
        cut=question.cut(comparison),
    )


@_of_store
def align(
    connection: Connection,
    tables: Sequence[str],
    *,
    at: str | Sequence[str] | datetime | None = None,
    look_back: int = LOOK_BACK,
    look_back_time: timedelta | None = None,
) -> AlignmentAnswer:
    """Return the newest versions of these tables that belong together.

    `at` names versions of other tables, such as `"lake.ods.orders@20"`, that they have to go with; or a time, after
    which nothing is considered. A NoAlignmentError says how the newest versions differ, if none belong together.
    """
    as_of = at if isinstance(at, datetime) else None
    fixed = [at] if isinstance(at, str) else [] if at is None or isinstance(at, datetime) else list(at)
    question = _Question(connection, as_of)
    for each in fixed:
        if "@" not in each:
            raise ConfigurationError(f"{each!r} names no version: write it as {each}@NUMBER")
    refs = question.starts([(each, None) for each in (*tables, *fixed)])
    question.refuse_twins(refs)
    question.reader.histories.leave_out_shared(refs)
    look = [(look_back, look_back_time)] * len(tables) + [(1, None)] * len(fixed)
    found, newest = question.anew(lambda: _search(question, [*zip(refs, look, strict=True)]))
    if isinstance(found, Miss):
        raise NoAlignmentError(_why_none(question, found, look_back))
    question.name([*found.states, *newest])
    rows = tuple(
        AlignedTable(question.table_at(state.version), steps, question.table_at(first.version))
        for state, steps, first, _ in zip(found.states, found.steps, newest, tables, strict=False)
    )
    return AlignmentAnswer(
        rows,
        complete_until(question.connection),
        question.limits(found.comparison.doubts),
        cut=question.cut(found.comparison),
        shared=question.shared(found.states, found.comparison),
    )


_LookBack = tuple[int, timedelta | None]
"""How many versions of a table are tried, and of which time."""


def _search(
    question: _Question, wanted: Sequence[tuple[SnapshotRef, _LookBack]]
) -> tuple[Alignment | Miss, list[TableContents]]:
    """Search versions of tables that belong together. Return the newest of each, too."""
    lines = VersionLines(question.reader, [(ref, most) for ref, (most, _) in wanted])
    candidates = [
        Candidates(ref.dataset, lines.states(number, since)) for number, (ref, (_, since)) in enumerate(wanted)
    ]
    found = AlignmentSearch(candidates, question.reader.merger).run()
    return found, [state for each in candidates if (state := each.at(0)) is not None]


def _why_none(question: _Question, miss: Miss, look_back: int) -> str:
    """Say how the newest versions differ."""
    question.name(miss.states)
    parts: list[str] = []
    for row in question.shared(miss.states, miss.comparison):
        if row.is_same is not True:
            contents = [
                f"{table.label} contains {_names_of(found)}, read {_last_read(found):%Y-%m-%d %H:%M:%S} UTC"
                for table, found in row.contained
                if found
            ]
            parts.append("; ".join(contents) or f"{row.dataset.label} itself differs")
    parts += [f"{each.about}: {each.detail}" for each in question.limits(miss.comparison.doubts)]
    tried = " (more sets than could be tried)" if miss.sets_left else ""
    names = ", ".join(question.table_at(each.version).dataset.label for each in miss.states)
    return (
        f"no versions of {names} belong together within the last {look_back} of each{tried}. "
        f"Of the newest: {'. '.join(parts)}. Look farther back, or let the job that is behind catch up"
    )


class _Question:
    """What one question reads, and the names in its answer."""

    def __init__(self, connection: Connection, as_of: datetime | None) -> None:
        self.connection = connection
        self._walk = TraversalContext(connection, None if as_of is None else micros_of_argument(as_of, "as_of"))
        self.reader = ContentsReader(self._walk)
        self._names: dict[bytes, Dataset] = {}

    def starts(
        self, tables: Sequence[tuple[str | Dataset, int | None]], branch: str | None = None
    ) -> list[SnapshotRef]:
        """Resolve tables and their versions; the newest one unless a number is given."""
        named = iter(find_all(self.connection, [each for each, _ in tables if isinstance(each, str)]))
        resolved = [next(named) if isinstance(each, str) else ResolvedName(each) for each, _ in tables]
        for each, (text, _) in zip(resolved, tables, strict=True):
            if each.column is not None:
                raise ConfigurationError(f"{text!r} names a column: versions are of tables")
        numbers = [
            each.snapshot if number is None else number for each, (_, number) in zip(resolved, tables, strict=True)
        ]
        wanted = [
            (each.dataset, StartSelector(number, None, branch)) for each, number in zip(resolved, numbers, strict=True)
        ]
        found = find_starts(self._walk, wanted, Basis.STATE)
        return [self._ref_of(start, number, branch) for start, number in zip(found, numbers, strict=True)]

    def _ref_of(self, found: StartPoint, number: int | None, branch: str | None) -> SnapshotRef:
        if not found.writes:
            read = self.reader.histories.versions_read(found.dataset.key, branch, number)
            if read:
                return read[0]
        if found.snapshot is None:
            raise ConfigurationError(f"{found.dataset.label} has no versions that are known: {_advice(found)}")
        return found.snapshot

    def refuse_twins(self, refs: Sequence[SnapshotRef]) -> None:
        """Raise an error unless these are two tables or more."""
        if len(refs) < 2:
            raise ConfigurationError("versions of one table alone always belong together: name two tables or more")
        seen: set[bytes] = set()
        for each in refs:
            one = self._walk.identities.one(each.dataset, each.generation)
            if one in seen:
                label = load_datasets(self.connection, [one])[one].label
                raise ConfigurationError(f"{label} is named twice: name each table once")
            seen.add(one)

    def anew(self, answer: Callable[[], T]) -> T:
        """Answer, and once more for each time that something turns out to be needed that was left out."""
        while True:
            with suppress(TooNear):
                return self._unless_too_near(answer)

    def _unless_too_near(self, answer: Callable[[], T]) -> T:
        try:
            return answer()
        except TooNear as needed:
            self.reader.include(needed.tables)
            raise

    def loaded(self, refs: Sequence[SnapshotRef]) -> list[TableContents]:
        self.reader.histories.load(refs)
        return [self.reader.state(each) for each in refs]

    def name(self, states: Sequence[TableContents]) -> None:
        """Load the names of all tables that an answer can mention."""
        keys = {each.dataset for each in states}
        for each in states:
            keys |= {key for pair in each.contents.frontiers for key in pair}
            keys |= {doubt.dataset for doubt in each.contents.doubts}
        self._names.update(load_datasets(self.connection, keys - self._names.keys()))

    def table_at(self, version: Version) -> TableAt:
        made_at = None if version.made_at is None else moment_of(version.made_at)
        dataset = self._names[version.dataset]
        where = (version.snapshot, version.position, version.generation, version.branch)
        return TableAt(dataset, *where, made_at, version.format)

    def contained(self, reader: bytes, frontier: Frontier) -> ContainedVersion:
        return ContainedVersion(
            self.table_at(frontier.newest),
            self._names[reader],
            frontier.since is None and not frontier.has_hole,
            frontier.since,
            moment_of(frontier.read_at),
            frontier.job,
        )

    def shared(self, states: Sequence[TableContents], comparison: VersionComparison) -> tuple[SharedAncestor, ...]:
        return tuple(self._shared_one(states, row) for row in comparison.shared)

    def _shared_one(self, states: Sequence[TableContents], row: SharedVersions) -> SharedAncestor:
        rows = []
        for each in states:
            if each.dataset == row.dataset or each.dataset in row.frontiers:
                readers = {} if each.dataset == row.dataset else each.contents.readers_of(row.dataset)
                found = [self.contained(reader, frontier) for reader, frontier in readers.items()]
                rows.append((self.table_at(each.version), tuple(sorted(found, key=lambda one: one.reader.label))))
        is_same = None if row.is_unknown else not row.differs
        return SharedAncestor(self._names[row.dataset], tuple(rows), is_same)

    def cut(self, comparison: VersionComparison) -> tuple[TableAt, ...]:
        """Return the versions of the shared tables, where all contain the same one."""
        found = [next(iter(row.versions.values())) for row in comparison.shared if len(row.versions) == 1]
        return tuple(sorted((self.table_at(each) for each in found), key=lambda each: each.label))

    def limits(self, doubts: Collection[Doubt]) -> tuple[AnswerLimit, ...]:
        found = LimitCollector()
        for each in doubts:
            found.add_snapshot(each.reason, each.dataset, each.snapshot, each.detail)
        self._names.update(load_datasets(self.connection, set(found.datasets) - self._names.keys()))
        add_known_limits(self.connection, self._names, self.reader.histories.runs, found)
        return found.as_limits(self._names)


def _names_of(found: Sequence[ContainedVersion]) -> str:
    return ", ".join(sorted({each.table.label for each in found}))


def _last_read(found: Sequence[ContainedVersion]) -> datetime:
    return max(each.read_at for each in found)


def _advice(found: StartPoint) -> str:
    return "name a version that is" if not found.note else found.note
