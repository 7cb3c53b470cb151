"""Which versions belong together, in random warehouses, is what their rows say.

Every commit of a table writes one row of its own, and what a job reads it copies. So how much of a table is in another
one can be seen in the rows, without any lineage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from headwater.events.jobs import CommitKind, Committed, Input, Output, OverwriteScope, RangeStart, ReadMode
from headwater.events.names import TableName
from headwater.events.scalars import Format
from headwater.lineage.questions.datasets import Dataset
from headwater.versions import NoAlignmentError, SharedAncestor, align, check, contained
from tests.kit.effort import examples
from tests.kit.lineage.scripted_producer import ScriptedProducer, dataset, store
from tests.kit.stores import memory_connection
from tests.kit.versions.oracle import AnswerCounts, History, ask, lines

pytestmark = pytest.mark.slow

Rows = frozenset[tuple[str, int]]


@dataclass
class Table:
    """A table of the warehouse. Its versions are numbered from 1."""

    name: str
    sources: tuple[str, ...]
    is_full: bool
    """Whether each commit replaces the table by what it reads, or adds what is new in its sources."""
    format: Format
    states: list[dict[str, Rows]] = field(default_factory=lambda: [{}])
    """For each version the rows by the table that they came from: its own, and those that it copied."""
    reached: list[dict[str, int]] = field(default_factory=lambda: [{}])
    """For each version how far each source was read."""

    @property
    def newest(self) -> int:
        return len(self.states) - 1

    def id_of(self, version: int) -> int:
        """The number that the format has: Delta begins with 0, Iceberg's have no order."""
        if self.format is Format.ICEBERG:
            return (version * 7_919 + 11) % 104_729
        return version - 1 if self.format is Format.DELTA else version

    def version_of(self, snapshot: int | None) -> int:
        return next(each for each in range(1, len(self.states)) if self.id_of(each) == snapshot)


@dataclass
class Warehouse:
    tables: dict[str, Table]
    events: list[Committed]

    def copies(self, name: str, version: int) -> dict[str, set[Rows]]:
        """For each table upstream, the rows of it that each table on the way copied."""
        table = self.tables[name]
        found: dict[str, set[Rows]] = {}
        for source in table.sources:
            rows = table.states[version].get(source)
            if rows is not None:
                found.setdefault(source, set()).add(rows)
                for behind, some in self.copies(source, table.reached[version][source]).items():
                    found.setdefault(behind, set()).update(some)
        return found

    def views(self, at: dict[str, int]) -> dict[str, list[set[Rows]]]:
        """For each table that at least two of these share, what each has of it."""
        found: dict[str, list[set[Rows]]] = {}
        for name, version in at.items():
            copies = self.copies(name, version)
            copies[name] = {self.tables[name].states[version][name]}
            for shared, rows in copies.items():
                found.setdefault(shared, []).append(rows)
        return {shared: rows for shared, rows in found.items() if len(rows) > 1}

    def surely_agree(self, at: dict[str, int]) -> bool:
        """Whether there is one set of rows of each shared table in all of them."""
        return all(len(set().union(*rows)) == 1 for rows in self.views(at).values())

    def may_agree(self, at: dict[str, int]) -> bool:
        """Whether all have the same sets of rows of each shared table."""
        return all(each == rows[0] for rows in self.views(at).values() for each in rows)

    def reached(self, name: str, version: int, shared: str) -> dict[str, int]:
        """How far each reader of a shared table has got that a table was made from; a table is there itself."""
        if name == shared:
            return {name: version}
        found: dict[str, int] = {}
        for source, until in self.tables[name].reached[version].items():
            behind = {name: until} if source == shared else self.reached(source, until, shared)
            for reader, far in behind.items():
                found[reader] = max(far, found.get(reader, 0))
        return found

    def commits(self, name: str, after: int, until: int) -> list[int]:
        """The versions that brought rows, newest first: a compaction brings none."""
        table = self.tables[name]
        return [each for each in range(until, after, -1) if (name, each) in table.states[each][name]]

    def have_begun(self, at: dict[str, int]) -> bool:
        """Whether no table lacks something that its newest version shares with others, while one of these has it; and
        something is shared, if it ever is."""
        newest = self._holders({name: self.tables[name].newest for name in at})
        now = self._holders(at)
        shared = {each: holders for each, holders in newest.items() if len(holders) > 1}
        is_any_shared = any(len(now.get(each, ())) > 1 for each in shared)
        return (is_any_shared or not shared) and all(
            not now.get(each) or holders <= now[each] for each, holders in shared.items()
        )

    def _holders(self, at: dict[str, int]) -> dict[str, set[str]]:
        """By which of these versions each table upstream is contained; they contain themselves."""
        found: dict[str, set[str]] = {}
        for name, version in at.items():
            for each in (name, *self.copies(name, version)):
                found.setdefault(each, set()).add(name)
        return found


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with memory_connection() as connection:
        connection.commit()
        yield connection


@st.composite
def warehouses(draw: st.DrawFn) -> Warehouse:
    tables: dict[str, Table] = {}
    for name in "abcdef"[: draw(st.integers(3, 6))]:
        form = draw(st.sampled_from([Format.DELTA, Format.PAIMON, Format.ICEBERG]))
        sources = () if len(tables) < 1 else draw(st.lists(st.sampled_from(sorted(tables)), max_size=2, unique=True))
        is_full = bool(sources) and (any(tables[each].is_full for each in sources) or draw(st.booleans()))
        tables[name] = Table(name, tuple(sources), is_full, form)
    producer = ScriptedProducer(1)
    events: list[Committed] = []
    for minute in range(draw(st.integers(3, 30))):
        table = tables[draw(st.sampled_from(sorted(tables)))]
        if table.newest and draw(st.integers(0, 5)) == 0:
            done: tuple[Output, tuple[Input, ...]] | None = (_compact(table), ())
        else:
            done = _commit(draw, tables, table)
        if done is not None:
            output, inputs = done
            events.append(producer.emit(minute, Committed, barrier=minute + 1, inputs=inputs, outputs=(output,)))
    return Warehouse(tables, events)


def _commit(draw: st.DrawFn, tables: dict[str, Table], table: Table) -> tuple[Output, tuple[Input, ...]] | None:
    """The next version of a table, out of what its sources have: the newest versions, or some that are older."""
    before, state = table.reached[-1], dict(table.states[-1])
    reached, inputs = dict(before), []
    for source in table.sources:
        last, newest = before.get(source, 0), tables[source].newest
        if newest == 0:
            return None
        until = draw(st.integers(max(last, 1), newest))
        where = _where(tables[source], until)
        if table.is_full:
            inputs.append(Input(**where, mode=ReadMode.STATE))
            state[source] = tables[source].states[until][source]
        elif until > last:
            inputs.append(_changes(draw, tables[source], last, where))
            state[source] = state.get(source, frozenset()) | tables[source].states[until][source]
        reached[source] = until
    if table.sources and not inputs:
        return None
    version = table.newest + 1
    own = frozenset({(table.name, version)})
    state[table.name] = own if table.is_full else state.get(table.name, frozenset()) | own
    table.states.append(state)
    table.reached.append(reached)
    scope = OverwriteScope.ALL if table.is_full else OverwriteScope.NOTHING
    kind = CommitKind.OVERWRITE if table.is_full else CommitKind.APPEND
    return _output(table, kind, scope, len(inputs)), tuple(inputs)


def _changes(draw: st.DrawFn, source: Table, last: int, where: dict[str, Any]) -> Input:
    """What is new in a source. Who begins reads it as a whole, or all changes from its beginning."""
    if last == 0 and (source.format is Format.ICEBERG or draw(st.booleans())):
        return Input(**where, mode=ReadMode.STATE)
    return Input(**where, mode=ReadMode.CHANGES, since=RangeStart(snapshot=source.id_of(last)))


def _compact(table: Table) -> Output:
    table.states.append(table.states[-1])
    table.reached.append(table.reached[-1])
    return _output(table, CommitKind.COMPACT, OverwriteScope.NOTHING, 0)


def _output(table: Table, kind: CommitKind, scope: OverwriteScope, inputs: int) -> Output:
    version = table.newest
    return Output(
        **_where(table, version),
        parent=table.id_of(version - 1) if version > 1 else None,
        commit_kind=kind,
        replaced=scope,
        made_from=tuple(range(inputs)),
    )


def _where(table: Table, version: int) -> dict[str, Any]:
    return {
        "dataset": dataset(table.name),
        "table": TableName(catalog="lake", database="db", table=table.name),
        "generation": "1",
        "format": table.format,
        "snapshot": table.id_of(version),
    }


@settings(max_examples=examples(100))
@given(data=st.data(), warehouse=warehouses())
def test_what_is_contained_is_what_was_copied(
    data: st.DataObject, warehouse: Warehouse, connection: Connection
) -> None:
    written = [each for each in warehouse.tables.values() if each.newest]
    if not written:
        return
    table = data.draw(st.sampled_from(written))
    version = data.draw(st.integers(1, table.newest))
    with connection.begin() as transaction:
        store(connection, warehouse.events)
        answer = contained(connection, f"lake.db.{table.name}", table.id_of(version))
        transaction.rollback()
    found: dict[str, set[Rows]] = {}
    for each in answer.rows:
        source = warehouse.tables[each.table.dataset.name.rpartition("/")[2]]
        rows = source.states[source.version_of(each.table.snapshot)][source.name]
        found.setdefault(source.name, set()).add(rows)
        assert each.is_whole
    assert found == warehouse.copies(table.name, version)
    assert not answer.limits


@settings(max_examples=examples(100))
@given(data=st.data(), warehouse=warehouses())
def test_versions_belong_together_if_their_rows_do(
    data: st.DataObject, warehouse: Warehouse, connection: Connection
) -> None:
    written = sorted(each.name for each in warehouse.tables.values() if each.newest)
    if len(written) < 2:
        return
    names = data.draw(st.lists(st.sampled_from(written), min_size=2, max_size=3, unique=True))
    at = {name: data.draw(st.integers(1, warehouse.tables[name].newest)) for name in names}
    with connection.begin() as transaction:
        store(connection, warehouse.events)
        answer = check(connection, {f"lake.db.{each}": warehouse.tables[each].id_of(at[each]) for each in at})
        transaction.rollback()
    if warehouse.surely_agree(at):
        assert answer.is_consistent is True
    if answer.is_consistent:
        assert warehouse.may_agree(at)
    assert answer.is_consistent is not None
    assert not answer.limits
    for each in answer.rows:
        _assert_lacked(warehouse, at, each)


def _assert_lacked(warehouse: Warehouse, at: dict[str, int], shared: SharedAncestor) -> None:
    """What is lacked is what was committed after the version that all have reached, and lacking is who hasn't."""
    name = _name(shared.dataset)
    readers = {(_name(table.dataset), _name(one.reader)) for table, found in shared.contained for one in found}
    reached = {
        (table, reader): far
        for table, version in at.items()
        for reader, far in warehouse.reached(table, version, name).items()
        if (table, reader) in readers or table == name
    }
    if shared.is_same:
        assert shared.lacked is None
        return
    assert shared.lacked is not None
    expected = warehouse.commits(name, min(reached.values()), max(reached.values()))
    found = [warehouse.tables[name].version_of(each.table.snapshot) for each in shared.lacked]
    assert found == expected
    for number, each in zip(expected, shared.lacked, strict=True):
        lacking = {(_name(table.dataset), _name(reader)) for table, reader in each.lacking}
        assert lacking == {pair for pair, far in reached.items() if far < number}


def _name(dataset: Dataset) -> str:
    return dataset.name.rpartition("/")[2]


@settings(max_examples=examples(100))
@given(data=st.data(), warehouse=warehouses())
def test_the_newest_versions_that_belong_together_are_found(
    data: st.DataObject, warehouse: Warehouse, connection: Connection
) -> None:
    written = sorted(each.name for each in warehouse.tables.values() if each.newest)
    if len(written) < 2:
        return
    names = data.draw(st.lists(st.sampled_from(written), min_size=2, max_size=3, unique=True))
    with connection.begin() as transaction:
        store(connection, warehouse.events)
        found = _aligned(connection, warehouse, names)
        transaction.rollback()
    if found is not None:
        assert warehouse.may_agree(found)
        assert warehouse.have_begun(found)
    for versions in product(*(range(1, warehouse.tables[name].newest + 1) for name in names)):
        other = dict(zip(names, versions, strict=True))
        if warehouse.surely_agree(other) and warehouse.have_begun(other):
            assert found is not None
            assert all(_rows(warehouse, name, found) >= _rows(warehouse, name, other) for name in names)


def _aligned(connection: Connection, warehouse: Warehouse, names: Sequence[str]) -> dict[str, int] | None:
    try:
        answer = align(connection, [f"lake.db.{name}" for name in names])
    except NoAlignmentError:
        return None
    tables = [warehouse.tables[each.table.dataset.name.rpartition("/")[2]] for each in answer.rows]
    return {table.name: table.version_of(each.table.snapshot) for table, each in zip(tables, answer.rows, strict=True)}


def _rows(warehouse: Warehouse, name: str, at: dict[str, int]) -> int:
    """How new a version is, by its newest own row: a compaction adds none."""
    return max(number for _, number in warehouse.tables[name].states[at[name]][name])


# A verdict about versions is yes only if the rows of the tables say so, whatever happened.


@settings(max_examples=examples(150))
@given(seed=st.integers(0, 2**32), has_gaps=st.booleans())
def test_no_yes_is_wrong(*, seed: int, has_gaps: bool, connection: Connection) -> None:
    history = History(Random(seed), has_gaps=has_gaps)
    assert ask(connection, history, AnswerCounts()), "\n".join(lines(history))


def test_few_answers_are_unknown_without_gaps(connection: Connection) -> None:
    """What is always unknown is never wrong."""
    counts = AnswerCounts()
    for seed in range(examples(100)):
        ask(connection, History(Random(seed), has_gaps=False), counts)
    unknown = sum(number for (verdict, _), number in counts.checks.items() if verdict is None)
    assert unknown <= max(2, sum(counts.checks.values()) // 10)
    assert counts.checks.get((True, True), 0) > unknown
