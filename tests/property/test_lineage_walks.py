"""Answers about random small stores are those that a plain search over the events themselves gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from headwater.events.jobs import Committed, Input, Output, OverwriteScope, RangeStart, ReadMode
from headwater.events.names import DatasetId
from headwater.events.scalars import Format
from headwater.lineage.mapping.keys import dataset_hash
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.lineage_answers import DatasetVersion
from headwater.lineage.questions.paths import path_between
from headwater.lineage.questions.snapshots import SnapshotQuestion, downstream_snapshots, upstream_snapshots
from headwater.lineage.questions.start_points import StartSelector
from headwater.lineage.questions.states import fold_by_walking, fold_in_database
from headwater.lineage.questions.tables import downstream_tables, upstream_tables
from headwater.lineage.questions.traversal import read_ahead
from headwater.lineage.questions.traversal.context import Basis
from headwater.lineage.questions.traversal.history_lines import IrregularHistory
from tests.kit.effort import examples
from tests.kit.lineage.scripted_producer import ScriptedProducer, dataset, store
from tests.kit.stores import memory_connection

pytestmark = pytest.mark.slow

TABLES = ("a", "b", "c", "d", "e")
Made = tuple[str, int]


class Edge(NamedTuple):
    target: Made
    source: Made
    since: int | None


@dataclass(frozen=True)
class Written:
    """One output of a commit, as the event has it."""

    place: Made
    parent: int | None
    is_anew: bool
    sources: tuple[tuple[Made, int | None], ...] | None
    """What was read, with where its changes began; none where it isn't known what it was made from."""


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with memory_connection() as connection:
        connection.commit()
        yield connection


@st.composite
def commits(draw: st.DrawFn) -> list[Committed]:
    """Each writes the next snapshot of one or two tables, out of snapshots that there are or that nobody reported
    of."""
    producer = ScriptedProducer(1)
    newest: dict[str, int] = dict.fromkeys(TABLES, 0)
    committed = []
    for minute in range(draw(st.integers(1, 14))):
        targets = draw(st.lists(st.sampled_from(TABLES), min_size=1, max_size=2, unique=True))
        inputs = tuple(draw(st.lists(_source(newest), max_size=3, unique=True)))
        outputs = []
        for target in targets:
            skipped = draw(st.integers(0, 9)) == 0
            parent = newest[target] + (1 if skipped else 0)
            newest[target] = parent + 1
            outputs.append(_output(draw, target, parent, len(inputs)))
        committed.append(producer.emit(minute, Committed, barrier=minute + 1, inputs=inputs, outputs=tuple(outputs)))
    return committed


@st.composite
def _source(draw: st.DrawFn, newest: dict[str, int]) -> Input:
    table = draw(st.sampled_from(TABLES))
    until = draw(st.integers(1, max(1, newest[table])))
    where: dict[str, Any] = {"dataset": dataset(table), "generation": "1", "format": Format.DELTA, "snapshot": until}
    if draw(st.booleans()):
        return Input(**where, mode=ReadMode.STATE)
    return Input(**where, mode=ReadMode.CHANGES, since=RangeStart(snapshot=draw(st.integers(0, until - 1))))


def _output(draw: st.DrawFn, table: str, parent: int, sources: int) -> Output:
    everything = tuple(range(sources))
    some = draw(st.lists(st.sampled_from(everything), unique=True).map(tuple)) if sources else ()
    return Output(
        dataset=dataset(table),
        generation="1",
        format=Format.DELTA,
        snapshot=parent + 1,
        parent=parent or None,
        replaced=draw(
            st.sampled_from([OverwriteScope.NOTHING, OverwriteScope.PART, OverwriteScope.NOTHING, OverwriteScope.ALL])
        ),
        made_from=draw(st.sampled_from([everything, everything, some, None])),
    )


class Plain:
    """The search over events."""

    def __init__(self, committed: Iterable[Committed]) -> None:
        self.made: dict[Made, Written] = {}
        for event in committed:
            sources = [(_place(each), each.since.snapshot if each.since else None) for each in event.inputs]
            for output in event.outputs:
                indexes = output.made_from
                chosen = None if indexes is None else tuple(sources[index] for index in indexes)
                place = _place(output)
                self.made[place] = Written(place, output.parent, output.replaced is OverwriteScope.ALL, chosen)

    def up(self, start: Made, *, state: bool) -> set[Edge]:
        found: set[Edge] = set()
        waiting = self.behind(start, None, state=state)
        seen = set(waiting)
        while waiting:
            written = waiting.pop()
            for source, since in written.sources or ():
                found.add(Edge(written.place, source, since))
                for other in self.behind(source, since, state=state):
                    if other not in seen:
                        seen.add(other)
                        waiting.append(other)
        return found

    def behind(self, place: Made, since: int | None, *, state: bool) -> list[Written]:
        """The commits whose rows were read: one, those of a range, or all of a state."""
        found: list[Written] = []
        table, number = place
        while (written := self.made.get((table, number))) is not None:
            found.append(written)
            if since is None and (not state or written.is_anew):
                break
            if written.parent is None or (since is not None and written.parent <= since):
                break
            number = written.parent
        return found

    def down(self, start: Made, *, state: bool) -> set[Edge]:
        found: set[Edge] = set()
        waiting, seen = [start], {start}
        while waiting:
            place = waiting.pop()
            parts = self.parts(place) if state else {place}
            for written in self.made.values():
                for source, since in written.sources or ():
                    if source in parts if since is None else _is_in(place, source, since):
                        found.add(Edge(written.place, source, since))
                        if written.place not in seen:
                            seen.add(written.place)
                            waiting.append(written.place)
        return found

    def parts(self, place: Made) -> set[Made]:
        """All states that the rows of a commit are a part of, as far as they weren't replaced."""
        found = {place}
        if place not in self.made:
            return found
        table, number = place
        while True:
            following = self.made.get((table, number + 1))
            if following is None or following.is_anew or following.parent != number:
                return found
            number += 1
            found.add((table, number))

    def tables(self) -> set[tuple[str, str]]:
        return {(each.place[0], source[0]) for each in self.made.values() for source, _ in each.sources or ()}


def _is_in(place: Made, source: Made, since: int) -> bool:
    return place[0] == source[0] and since < place[1] <= source[1]


def _place(of: Input | Output) -> Made:
    assert of.dataset is not None
    assert of.snapshot is not None
    return (of.dataset.name.rpartition("/")[2], of.snapshot)


def _asked(table: str) -> Dataset:
    place = DatasetId(namespace="s3://lake", name=f"w/{table}")
    key = dataset_hash(place)
    assert key is not None
    return Dataset(key)


def closure(edges: set[tuple[str, str]], start: str, *, up: bool) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    waiting, seen = [start], {start}
    while waiting:
        one = waiting.pop()
        for target, source in edges:
            near, far = (target, source) if up else (source, target)
            if near == one:
                found.add((target, source))
                if far not in seen:
                    seen.add(far)
                    waiting.append(far)
    return found


@given(commits(), st.integers())
@settings(max_examples=examples(60), deadline=None)
def test_sql_answers_what_a_plain_search_finds(connection: Connection, committed: list[Committed], seed: int) -> None:
    plain = Plain(committed)
    shuffled = [*committed, *committed[::2]]
    Random(seed).shuffle(shuffled)
    store(connection, shuffled)
    try:
        for table, number in plain.made:
            for basis in ("commit", "state"):
                state = basis == "state"
                up = upstream_snapshots(connection, _asked(table), number, basis=basis)
                assert _once(up) == plain.up((table, number), state=state), (table, number, basis)
                down = downstream_snapshots(connection, _asked(table), number, basis=basis)
                assert _once(down) == plain.down((table, number), state=state), (table, number, basis)
        for table in {table for table, _ in plain.made}:
            for question, is_up in ((upstream_tables, True), (downstream_tables, False)):
                edges = {(_name(each.target), _name(each.source)) for each in question(connection, _asked(table))}
                assert edges == closure(plain.tables(), table, up=is_up), (table, is_up)
    finally:
        connection.rollback()


@given(commits())
@settings(max_examples=examples(60), deadline=None)
def test_the_database_folds_a_state_as_walking_does(connection: Connection, committed: list[Committed]) -> None:
    """What isn't regular enough it leaves to walking."""
    store(connection, committed)
    try:
        for table, number in Plain(committed).made:
            for depth in (None, 1):
                with suppress(IrregularHistory):
                    folded = fold_in_database(_state(connection, table, number), depth, 10_000)
                    assert folded == fold_by_walking(_state(connection, table, number), depth, 10_000)
    finally:
        connection.rollback()


@given(commits(), st.sampled_from(TABLES), st.sampled_from(TABLES))
@settings(max_examples=examples(60), deadline=None)
def test_a_path_is_a_shortest_one(connection: Connection, committed: list[Committed], source: str, target: str) -> None:
    """Searched from both ends, it is as long as one that is searched from one end; also from a table to itself."""
    edges = Plain(committed).tables()
    store(connection, committed)
    try:
        found = path_between(connection, _asked(source), _asked(target))
    finally:
        connection.rollback()
    way = [(_name(dataset_of(each.target)), _name(dataset_of(each.source))) for each in found]
    assert set(way) <= edges
    assert len(way) == _distance(edges, source, target)
    if way:
        assert (way[0][1], way[-1][0]) == (source, target)
        assert all(one[0] == other[1] for one, other in pairwise(way))


def dataset_of(end: Dataset | DatasetVersion) -> Dataset:
    assert isinstance(end, Dataset)
    return end


def _distance(edges: set[tuple[str, str]], source: str, target: str) -> int:
    """0 if there is no path."""
    reached, steps = {source}, 0
    while steps <= len(TABLES):
        steps += 1
        reached = {above for above, below in edges if below in reached}
        if target in reached:
            return steps
    return 0


@given(commits(), st.sampled_from([None, 2, 3, 5]), st.integers(1, 3), st.integers(1, 40))
@settings(max_examples=examples(60), deadline=None)
def test_what_is_read_ahead_changes_no_answer(
    connection: Connection, committed: list[Committed], depth: int | None, levels: int, most: int
) -> None:
    """However far it goes, and wherever its limit cuts it off."""
    store(connection, committed)
    ahead: dict[str, Any] = {"_DIALECTS": {"sqlite"}, "_LEVELS": levels, "_MOST_SNAPSHOTS": most, "_MOST_STARTS": 2}
    try:
        for table, number in Plain(committed).made:
            level_by_level = upstream_snapshots(connection, _asked(table), number, depth=depth)
            read_ahead._select_ahead.cache_clear()
            with patch.multiple(read_ahead, **ahead):
                assert upstream_snapshots(connection, _asked(table), number, depth=depth) == level_by_level
            read_ahead._select_ahead.cache_clear()
    finally:
        connection.rollback()


def _state(connection: Connection, table: str, number: int) -> SnapshotQuestion:
    return SnapshotQuestion.of(connection, _asked(table), StartSelector(number), Basis.STATE, None)


def _once(rows: Iterable[Any]) -> set[Edge]:
    """The edges of an answer, which has each of them once."""
    found = [_edge(each) for each in set(rows)]
    assert len(found) == len([*rows])
    return set(found)


def _edge(row: Any) -> Edge:
    target, source = row.target, row.source
    return Edge((_name(target.dataset), target.snapshot), (_name(source.dataset), source.snapshot), row.since)


def _name(found: Dataset) -> str:
    return found.name.rpartition("/")[2]
