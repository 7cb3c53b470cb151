"""Which versions a table contains, whether versions of tables belong together, and the newest ones that do.

The versions of several tables backwards, read in portions for all tables together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import wraps
from itertools import islice
from typing import Concatenate, Final, ParamSpec, TypeVar, cast

from sqlalchemy import Connection

from headwater.lineage.client import Lineage
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef
from headwater.lineage.store import translate_errors
from headwater.versions.alignment import Alignment, AlignmentSearch, Candidates, Miss, NoAlignmentError
from headwater.versions.answers import (
    AlignedTable,
    AlignmentAnswer,
    ConsistencyAnswer,
    ContainedAnswer,
    text_of_difference,
    text_of_miss,
)
from headwater.versions.consistency import compare
from headwater.versions.contents import ContentsReader
from headwater.versions.fixed_versions import At, fixed_versions
from headwater.versions.model import TableContents
from headwater.versions.table_parts import MAIN
from headwater.versions.version_question import NamedVersion, VersionQuestion, named_version

_PORTION: Final = 4
_GREATEST: Final = 256
_COMMITS: Final = 1_000
"""So many commits are looked at, where fewer versions are wanted: some change no rows, and are no versions."""


class VersionLines:
    """The versions of tables, each from a snapshot backwards. Whoever needs more of one table probably will of others:
    so the next ones of all are read at once, in portions that grow."""

    def __init__(self, reader: ContentsReader, starts: Sequence[tuple[SnapshotRef, int]]) -> None:
        """Of each table as many versions at most."""
        self._reader = reader
        line = reader.histories.line
        self._lines = [islice(line(ref, max(most, _COMMITS)), most) for ref, most in starts]
        self._refs: list[list[SnapshotRef]] = [[] for _ in starts]
        self._size = _PORTION

    def states(self, table: int, since: timedelta | None) -> Iterator[TableContents]:
        """Yield a table's versions, the newest first: those that aren't older than the newest by more than a time."""
        earliest: int | None = None
        for ref in self._line(table):
            state = self._reader.state(ref)
            made_at = state.version.made_at
            if since is not None and made_at is not None:
                earliest = made_at - int(since.total_seconds() * 1_000_000) if earliest is None else earliest
                if made_at < earliest:
                    return
            yield state

    def _line(self, table: int) -> Iterator[SnapshotRef]:
        found, index = self._refs[table], 0
        while index < len(found) or self._read_on(table):
            yield found[index]
            index += 1

    def _read_on(self, table: int) -> bool:
        """Read the next versions of all tables. Return whether there are any of one."""
        new = [list(islice(line, self._size)) for line in self._lines]
        self._size = min(self._size * 4, _GREATEST)
        for known, some in zip(self._refs, new, strict=True):
            known.extend(some)
        self._reader.histories.load([ref for some in new for ref in some])
        return bool(new[table])


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
    """Return for each table upstream the versions that are in a table at a snapshot, by each reader on the way. A
    ConfigurationError if the store knows no such snapshot."""
    until = complete_until(connection)
    question = VersionQuestion(connection, as_of)
    named = NamedVersion(table) if isinstance(table, Dataset) else named_version(connection, table)
    if branch is not None:
        named = NamedVersion(table, branch=None if branch == MAIN else branch)
    [ref] = question.starts([named._replace(snapshot=snapshot)])
    question.refuse_unseen(ref, branch=named.branch)
    question.reader.histories.load([ref])
    state = question.reader.state(ref)
    question.name([state])
    found = state.contents.all
    rows = [question.contained(reader, state) for (reader, _), some in found.states.items() for state in some.values()]
    rows.sort(key=lambda row: (row.table.label, row.reader.label))
    limits = question.limits(found.doubts)
    of = question.table_at(state.version)
    return ContainedAnswer(tuple(rows), until, limits, of=of)


@_of_store
def check(
    connection: Connection,
    tables: Mapping[str, int | None] | Sequence[str | NamedVersion],
    *,
    as_of: datetime | None = None,
    allow_unseen: bool = False,
) -> ConsistencyAnswer:
    """Return whether tables belong together at these versions: `["b@11", "c@15"]`, or `{"b": 11, "c": 15}`. A table
    without a version is meant at its newest one.

    A version that nobody is known to have written or read is an error, unless you `allow_unseen` ones: then it isn't
    known what such a version of a table contains that any job is known to write."""
    until = complete_until(connection)
    question = VersionQuestion(connection, as_of)
    refs = question.starts(_named(connection, tables))
    question.refuse_twins(refs)
    if not allow_unseen:
        question.refuse_unseen(*refs)
        question.refuse_dropped(refs)
    question.reader.histories.leave_out_shared(refs)
    states = question.anew(lambda: question.loaded(refs))
    comparison = compare(states, question.reader.histories.is_made_from)
    question.name(states)
    return ConsistencyAnswer(
        question.shared_with_lacked(states, comparison),
        until,
        question.limits(comparison.doubts),
        tables=tuple(question.table_at(state.version) for state in states),
        is_consistent=comparison.is_consistent,
        cut=question.cut(comparison),
    )


@_of_store
def align(
    connection: Connection,
    tables: Sequence[str],
    *,
    at: At = None,
    look_back: int = LOOK_BACK,
    look_back_time: timedelta | None = None,
) -> AlignmentAnswer:
    """Return the newest versions of these tables that belong together.

    `at` names versions of other tables that they have to go with: `"lake.ods.orders@20"`, `{"lake.ods.orders": 20}`, a
    cut or a data version of aligned jobs. Or it is a time, after which nothing is considered. A NoAlignmentError says
    how the newest versions differ, if none belong together.
    """
    until = complete_until(connection)  # before the rows: those that come meanwhile may be missing
    named = _named(connection, tables)
    return replace(find_alignment(connection, named, at, (look_back, look_back_time)), complete_until=until)


_LookBack = tuple[int, timedelta | None]
"""How many versions of a table are tried, and of which time."""


def find_alignment(
    connection: Connection,
    tables: Sequence[str | NamedVersion],
    at: At = None,
    look_back: _LookBack = (LOOK_BACK, None),
) -> AlignmentAnswer:
    """Return what `align` does, and don't ask how complete the store is. A name that isn't a table's is an error, also
    that of a branch: not all that asks can read versions of branches."""
    fixed, as_of = fixed_versions(at)
    question = VersionQuestion(connection, as_of)
    wanted = [NamedVersion(table) if isinstance(table, str) else table for table in tables]
    refs = question.starts([*wanted, *(NamedVersion(version.table, version.snapshot) for version in fixed)])
    question.refuse_twins(refs)
    question.refuse_other_generations(refs[len(tables) :], fixed)
    question.refuse_unseen(*refs)
    question.reader.histories.leave_out_shared(refs)
    look = [look_back] * len(tables) + [(1, None)] * len(fixed)
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
        None,
        question.limits(found.comparison.doubts),
        cut=question.cut(found.comparison),
        shared=question.shared(found.states, found.comparison),
    )


def _named(
    connection: Connection, tables: Mapping[str, int | None] | Sequence[str | NamedVersion]
) -> list[NamedVersion]:
    if isinstance(tables, Mapping):
        return [named_version(connection, table)._replace(snapshot=number) for table, number in tables.items()]
    return [named_version(connection, table) for table in tables]


def _search(
    question: VersionQuestion, wanted: Sequence[tuple[SnapshotRef, _LookBack]]
) -> tuple[Alignment | Miss, list[TableContents]]:
    """Search versions of tables that belong together. Return the newest of each, too."""
    lines = VersionLines(question.reader, [(ref, most) for ref, (most, _) in wanted])
    candidates = [
        Candidates(ref.dataset, lines.states(number, since)) for number, (ref, (_, since)) in enumerate(wanted)
    ]
    found = AlignmentSearch(candidates, question.reader.histories.is_made_from).run()
    return found, [state for candidate in candidates if (state := candidate.at(0)) is not None]


def _why_none(question: VersionQuestion, miss: Miss, look_back: _LookBack) -> str:
    """Say how the newest versions differ."""
    question.name(miss.states)
    rows = [table for table in miss.comparison.shared if not table.is_same]
    reasons = [
        text_of_difference(question.shared_one(miss.states, row), question.lateness(miss.states, row)) for row in rows
    ]
    reasons += [f"{limit.about}: {limit.detail}" for limit in question.limits(miss.comparison.doubts)]
    names = [question.table_at(state.version).dataset.label for state in miss.states]
    is_late = any(row.is_same is False for row in rows)
    return text_of_miss(names, reasons, look_back, sets_left=miss.sets_left, is_late=is_late)
