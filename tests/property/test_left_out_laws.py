"""What is left out behind tables that all share changes no answer about versions, whatever happened.

The histories are wild: tables are rolled back, made again, written on branches, unified with others; events are late or
lost, lineage is deleted, and commits read what they like, also of tables that are made from theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from headwater.events.administration import DatasetsUnified, LineageDeleted
from headwater.events.jobs import CommitKind, Committed, Input, Output, OverwriteScope, RangeStart, ReadMode
from headwater.events.names import TableName
from headwater.events.scalars import Format
from headwater.lineage.maintenance.deletion import expire_before
from headwater.versions import NoAlignmentError, align, check
from headwater.versions.shared_tables import SharedTables
from tests.kit.effort import examples
from tests.kit.lineage.scripted_producer import ScriptedProducer, at, dataset, store
from tests.kit.stores import memory_connection

pytestmark = pytest.mark.slow

NOTHING, PART, ALL, UNKNOWN = (
    OverwriteScope.NOTHING,
    OverwriteScope.PART,
    OverwriteScope.ALL,
    OverwriteScope.UNKNOWN,
)


@dataclass
class Table:
    """A table and what is known of its snapshots."""

    name: str
    format: Format
    generation: int = 1
    newest: dict[str | None, int] = field(default_factory=lambda: {None: 0})
    """By branch."""
    made: list[tuple[int, str | None, int]] = field(default_factory=list)
    """Generation, branch and version of all that were ever made."""

    def id_of(self, version: int) -> int:
        return (version * 7_919 + 11) % 104_729 if self.format is Format.ICEBERG else version

    def where(self, generation: int, branch: str | None, version: int) -> dict[str, Any]:
        return {
            "dataset": dataset(self.name),
            "table": TableName(catalog="lake", database="db", table=self.name),
            "generation": str(generation),
            "format": self.format,
            "branch": branch,
            "snapshot": self.id_of(version),
        }


@dataclass
class History:
    tables: list[Table]
    producer: ScriptedProducer

    @property
    def written(self) -> list[str]:
        return [each.name for each in self.tables if any(each.made)]


@st.composite
def wild_histories(draw: st.DrawFn) -> History:
    forms = st.sampled_from([Format.DELTA, Format.PAIMON, Format.PAIMON, Format.ICEBERG])
    tables = [Table(name, draw(forms)) for name in "abcdefg"[: draw(st.integers(3, 7))]]
    producer = ScriptedProducer(1)
    minutes = draw(st.integers(4, 40))
    for minute in range(minutes):
        _happen(draw, tables, producer, minute, draw(st.integers(0, 39)))
    return History(tables, producer)


def _happen(draw: st.DrawFn, tables: list[Table], producer: ScriptedProducer, minute: int, dice: int) -> None:
    table = draw(st.sampled_from(tables))
    if dice == 0:
        table.generation += 1
        table.newest = {None: 0}
    elif dice == 1:
        others = tuple({dataset(draw(st.sampled_from(tables)).name)} - {dataset(table.name)})
        if others:
            producer.emit(minute, DatasetsUnified, dataset=dataset(table.name), others=others)
    elif dice == 2 and draw(st.booleans()):
        draft = expire_before(at(draw(st.integers(0, minute))))
        producer.emit(minute, LineageDeleted, scope=draft.scope, before=draft.before)
    elif dice in {3, 4} and table.newest[None] > 1:
        back = draw(st.integers(1, table.newest[None] - 1))
        _commit(draw, producer, minute, table, None, (back, table.newest[None]), CommitKind.ROLLBACK, [])
        table.newest[None] = back
    elif dice in {5, 6} and table.newest[None]:
        _commit(draw, producer, minute, table, None, None, CommitKind.COMPACT, [])
    else:
        branch = "side" if dice == 7 and table.newest[None] else None
        table.newest.setdefault(branch, table.newest[None])
        reads = _reads(draw, tables, table)
        _commit(draw, producer, minute, table, branch, None, CommitKind.APPEND, reads)


def _reads(draw: st.DrawFn, tables: list[Table], of: Table) -> list[Input]:
    """Mostly of tables that stand before this one, and mostly their newest snapshots."""
    before = tables[: tables.index(of)]
    among = tables if draw(st.integers(0, 19)) == 0 else before
    chosen = draw(st.lists(st.sampled_from(among), max_size=3, unique_by=lambda each: each.name)) if among else []
    found = [_read(draw, each) for each in chosen if each.made]
    if draw(st.integers(0, 29)) == 0:
        found.append(Input(dataset=None, opaque="an RDD"))
    return found


def _read(draw: st.DrawFn, source: Table) -> Input:
    back = draw(st.sampled_from([1, 1, 1, 2, 3]))
    generation, branch, version = source.made[-min(back, len(source.made))]
    where = source.where(generation, branch, version)
    if draw(st.integers(0, 2)) > 0:
        return Input(**where, mode=ReadMode.STATE)
    since = max(0, version - draw(st.integers(1, 3)))
    start = None if draw(st.integers(0, 19)) == 0 else RangeStart(snapshot=source.id_of(since) if since else 0)
    return Input(**where, mode=ReadMode.CHANGES, since=start)


def _commit(  # noqa: PLR0917 - what a commit is
    draw: st.DrawFn,
    producer: ScriptedProducer,
    minute: int,
    table: Table,
    branch: str | None,
    moved: tuple[int, int] | None,
    kind: CommitKind,
    reads: list[Input],
) -> None:
    """The next version of a table, or one that it is set back to from another one."""
    version, parent = moved or (table.newest[branch] + 1, table.newest[branch])
    scope = NOTHING
    if kind is CommitKind.APPEND:
        scope = draw(st.sampled_from([NOTHING, NOTHING, ALL, ALL, PART, UNKNOWN]))
        kind = CommitKind.APPEND if scope is NOTHING else CommitKind.OVERWRITE
        table.made.append((table.generation, branch, version))
    table.newest[branch] = version
    everything = tuple(range(len(reads)))
    indexes = draw(st.sampled_from([everything] * 9 + [None, everything[:1]]))
    lacks_parent = draw(st.integers(0, 39)) == 0
    output = Output(
        **table.where(table.generation, branch, version),
        parent=None if parent == 0 or lacks_parent else table.id_of(parent),
        commit_kind=kind,
        replaced=scope,
        made_from=indexes,
    )
    is_lost = draw(st.integers(0, 29)) == 0
    tell = producer.lose if is_lost else producer.emit
    tell(minute, Committed, barrier=minute + 1, inputs=tuple(reads), outputs=(output,))


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with memory_connection() as connection:
        connection.commit()
        yield connection


def told(ask: Callable[[], Any]) -> Any:
    """All that an answer says but the limits of what it names by the way."""
    try:
        answer = ask()
    except NoAlignmentError as error:
        return str(error)
    return answer


@settings(max_examples=examples(150))
@given(data=st.data(), history=wild_histories(), seed=st.integers())
def test_what_is_left_out_changes_no_answer(
    data: st.DataObject, history: History, seed: int, connection: Connection
) -> None:
    if len(history.written) < 2:
        return
    names = data.draw(st.lists(st.sampled_from(history.written), min_size=2, max_size=4, unique=True))
    events = [*history.producer.events]
    Random(seed).shuffle(events)
    with connection.begin() as transaction:
        store(connection, events)
        tables = [f"lake.db.{name}" for name in names]
        for question in (check, align):
            try:
                short = told(lambda: question(connection, tables))  # noqa: B023 - it is called at once
            except Exception as error:  # noqa: BLE001 - what is refused is refused in both ways
                short = repr(error)
            with patch.object(SharedTables, "nearest", lambda _: frozenset()):
                try:
                    long = told(lambda: question(connection, tables))  # noqa: B023
                except Exception as error:  # noqa: BLE001
                    long = repr(error)
            assert short == long
        transaction.rollback()
