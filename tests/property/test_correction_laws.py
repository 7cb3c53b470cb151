"""The snapshots that a plan calls wrong are those of a simulation, which goes through a history commit by commit.

The plan walks the store from the wrong snapshot on, by what the database knows of readers and parents. The simulation
knows each table's snapshots and two words of each: whether its state has wrong rows, and whether its changes have.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.events.jobs import CommitKind, Committed, Input, Output, OverwriteScope, RangeStart, ReadMode
from headwater.events.names import JobName, TableName
from headwater.events.scalars import Format
from headwater.versions.correction import TableVerdict, plan_correction
from tests.kit.effort import examples
from tests.kit.lineage.scripted_producer import ScriptedProducer, at, dataset, store
from tests.kit.stores import memory_connection

pytestmark = pytest.mark.slow

KINDS = {
    CommitKind.APPEND: OverwriteScope.NOTHING,
    CommitKind.MERGE: OverwriteScope.PART,
    CommitKind.OVERWRITE: OverwriteScope.ALL,
    CommitKind.COMPACT: OverwriteScope.NOTHING,
}


@dataclass
class Snapshot:
    """A snapshot, and whether what is in it, or what it added, is wrong."""

    id: int
    parent: Snapshot | None
    has_wrong: bool = False
    adds_wrong: bool = False

    @property
    def line(self) -> list[Snapshot]:
        """The snapshot and those before it, the newest first."""
        return [self, *(self.parent.line if self.parent else [])]


@dataclass
class Table:
    name: str
    format: Format
    made: list[Snapshot] = field(default_factory=list)
    head: Snapshot | None = None

    @property
    def where(self) -> dict[str, Any]:
        named = TableName(catalog="lake", database="db", table=self.name)
        return {"dataset": dataset(self.name), "table": named, "generation": "1", "format": self.format}

    def add(self) -> Snapshot:
        number = len(self.made) + 1
        new = Snapshot((number * 7_919 + 11) % 104_729 if self.format is Format.ICEBERG else number, self.head)
        self.made.append(new)
        self.head = new
        return new


@dataclass
class History:
    tables: list[Table]
    producer: ScriptedProducer
    wrong: Snapshot | None = None


@st.composite
def histories(draw: st.DrawFn) -> History:
    forms = st.sampled_from([Format.DELTA, Format.ICEBERG, Format.PAIMON])
    history = History([Table(name, draw(forms)) for name in "abcde"], ScriptedProducer(1))
    planted = draw(st.integers(1, 8))
    for minute in range(1, draw(st.integers(planted + 1, 30))):
        if minute == planted:
            history.wrong = _plant(history, minute)
        else:
            _commit(draw, history, minute)
    return history


def _plant(history: History, minute: int) -> Snapshot:
    """Let a job add wrong rows to the table `a`."""
    table = history.tables[0]
    new = table.add()
    new.has_wrong = new.adds_wrong = True
    _emit(history, minute, (), [_output(table, new, CommitKind.APPEND, ())])
    return new


def _commit(draw: st.DrawFn, history: History, minute: int) -> None:
    written = [table for table in history.tables if table.head is not None]
    table = draw(st.sampled_from(history.tables))
    if table.format is Format.ICEBERG and table.head is not None and draw(st.integers(0, 9)) == 0:
        _roll_back(draw, history, table, minute)
        return
    reads: list[Input] = []
    wrong: list[bool] = []
    for source in (
        draw(st.lists(st.sampled_from(written), max_size=3, unique_by=lambda each: each.name)) if written else []
    ):
        read, is_wrong = _read(draw, source)
        reads.append(read)
        wrong.append(is_wrong)
    others = [each for each in history.tables if each is not table]
    outputs = []
    for target in [table, *draw(st.lists(st.sampled_from(others), max_size=1))]:
        kind = draw(
            st.sampled_from(
                [CommitKind.APPEND, CommitKind.APPEND, CommitKind.MERGE, CommitKind.OVERWRITE, CommitKind.COMPACT]
            )
        )
        kind = CommitKind.APPEND if target.head is None else kind
        used = (
            ()
            if kind is CommitKind.COMPACT
            else tuple(draw(st.sets(st.sampled_from(range(len(reads))))))
            if reads
            else ()
        )
        before, new = target.head, target.add()
        came = any(wrong[index] for index in used)
        stays = before is not None and before.has_wrong and kind is not CommitKind.OVERWRITE
        rewrites = kind is CommitKind.MERGE or (kind is CommitKind.APPEND and target.format is Format.PAIMON)
        new.has_wrong, new.adds_wrong = came or stays, came or (stays and rewrites)
        outputs.append(_output(target, new, kind, used))
    _emit(history, minute, reads, outputs)


def _roll_back(draw: st.DrawFn, history: History, table: Table, minute: int) -> None:
    assert table.head is not None
    current, table.head = table.head, draw(st.sampled_from(table.head.line))
    about: dict[str, Any] = {"commit_kind": CommitKind.ROLLBACK, "replaced": OverwriteScope.UNKNOWN}
    pointer = Output(**table.where, snapshot=table.head.id, parent=current.id, made_from=(), **about)
    _emit(history, minute, (), [pointer])


def _read(draw: st.DrawFn, source: Table) -> tuple[Input, bool]:
    """Read a state of a table, or the changes between two of its snapshots that are of one line."""
    until = draw(st.sampled_from(source.made))
    line = until.line
    if len(line) == 1 or draw(st.booleans()):
        return Input(**source.where, mode=ReadMode.STATE, snapshot=until.id), until.has_wrong
    steps = draw(st.integers(1, len(line) - 1))
    since = RangeStart(snapshot=line[steps].id)
    read = Input(**source.where, mode=ReadMode.CHANGES, snapshot=until.id, since=since)
    return read, any(each.adds_wrong for each in line[:steps])


def _output(table: Table, new: Snapshot, kind: CommitKind, made_from: tuple[int, ...]) -> Output:
    parent = None if new.parent is None else new.parent.id
    about: dict[str, Any] = {"commit_kind": kind, "replaced": KINDS[kind], "made_from": made_from}
    return Output(**table.where, snapshot=new.id, parent=parent, **about)


def _emit(history: History, minute: int, inputs: Any, outputs: list[Output]) -> None:
    job = JobName(name=f"job-{minute}")
    history.producer.emit(minute, Committed, barrier=minute, inputs=tuple(inputs), outputs=tuple(outputs), job=job)


@settings(max_examples=examples(60), deadline=None)
@given(history=histories())
def test_what_is_wrong_is_what_a_simulation_says(history: History) -> None:
    """It finds a reader that is missed and one that is called wrong for nothing, a table that is called right while its
    newest snapshot has wrong rows, an order in which a table stands before what it is made from, and jobs that aren't
    asked to run again."""
    assert history.wrong is not None
    with memory_connection() as connection:
        store(connection, history.producer)
        plan = plan_correction(connection, f"lake.db.a@{history.wrong.id}", now=at(60))
    found = {table.table.removeprefix("lake.db."): table for table in plan.tables}
    wrong = {t.name: {each.id for each in t.made if each.has_wrong} for t in history.tables}
    assert {name: set(table.snapshots) for name, table in found.items()} == {n: ids for n, ids in wrong.items() if ids}
    for table in history.tables:
        if table.name in found:
            assert table.head is not None
            is_wrong = found[table.name].verdict is TableVerdict.WRONG
            assert (is_wrong, found[table.name].newest) == (table.head.has_wrong, table.head.id)
    places = [table.table for table in plan.tables]
    for place, each in enumerate(plan.tables):
        before = [source for source in each.made_from if not each.in_cycle]
        assert all(places.index(source) < place for source in before)
