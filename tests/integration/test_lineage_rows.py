"""Rows in real databases are what they are in memory, whatever the order, the batches and the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import permutations
from random import Random
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, create_engine

from headwater.events import DatasetId, Event, Input, JobLineage, Output
from headwater.events.clock import micros_of
from headwater.lineage.bulk import merge_packed, merge_rows, pack_rows, postgres
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import Row, RowSet
from headwater.lineage.rows.tables import READ, WRITE
from headwater.lineage.sql import METADATA, store_digest
from headwater.local import Service
from headwater.testing.examples import COMMITTED, EXAMPLES
from headwater.testing.strategies import events
from tests.kit.effort import examples
from tests.kit.lineage.row_strategies import pooled, unique

pytestmark = pytest.mark.slow

DATASET = DatasetId(namespace="s3://lake", name="warehouse/sales/orders")
Way: TypeAlias = "Callable[[Connection, Iterable[Row]], int]"


Appended: TypeAlias = "tuple[Event, int | None]"
"""An event, and when it was appended to its bus."""


def _merge_packed(connection: Connection, rows: Iterable[Row]) -> int:
    return merge_packed(connection, pack_rows(rows))


_WAYS: dict[str, Way] = {"bulk": merge_rows, "copied": merge_rows, "packed": _merge_packed}


@dataclass
class Store:
    """A database, and one of the ways into it."""

    engine: Engine
    merge: Way

    def digest_of(self, batches: list[list[Event]]) -> str:
        """What it would be if it got these, one batch after the other."""
        return self.digest_of_appended([[(event, None) for event in batch] for batch in batches])

    def digest_of_appended(self, batches: list[list[Appended]]) -> str:
        with self.engine.connect() as connection:
            for batch in batches:
                self.merge(connection, [row for event, appended in batch for row in map_event(event, appended)])
            digest = store_digest(connection)
            connection.rollback()
        return digest


@pytest.fixture(
    params=[
        ("sqlite", "bulk"),
        *(pytest.param(("postgres", way), marks=pytest.mark.database) for way in ("bulk", "copied", "packed")),
        *(pytest.param(("mariadb", way), marks=[pytest.mark.database, pytest.mark.long]) for way in ("bulk", "packed")),
    ],
    ids="-".join,
    scope="module",
)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    database, way = request.param
    if database == "sqlite":
        url = "sqlite://"
    else:
        service: Service = request.getfixturevalue(database)
        url = service.address
    engine = create_engine(url)
    METADATA.create_all(engine)
    with pytest.MonkeyPatch.context() as patch:
        if way in {"copied", "packed"}:  # PostgreSQL's way for many, for a single row too
            patch.setattr(postgres, "FEW", 0)
        yield Store(engine, _WAYS[way])
    METADATA.drop_all(engine)
    engine.dispose()


def digest_in_memory(emitted: list[Event]) -> str:
    state = RowSet()
    for event in emitted:
        state.merge(map_event(event))
    return state.digest()


def test_all_kinds_of_events(store: Store) -> None:
    emitted = list(EXAMPLES)
    assert store.digest_of([emitted]) == digest_in_memory(emitted)
    assert store.digest_of([[event] for event in reversed(emitted)]) == digest_in_memory(emitted)


def test_what_is_on_a_bus_twice_is_the_same_in_any_order(store: Store) -> None:
    """A producer's clock is half an hour ahead, and what it sends again is appended 40 s later: two times of one event,
    each cut by its own append time. In other tests a repeated event has its time."""
    twice: list[list[Appended]] = [
        [(event, micros_of(event.time) - ahead * 1_000_000) for event in EXAMPLES] for ahead in (1_800, 1_760)
    ]
    state = RowSet()
    for event, appended in (each for batch in twice for each in batch):
        state.merge(map_event(event, appended))
    assert store.digest_of_appended(twice) == state.digest()
    assert store.digest_of_appended(twice[::-1]) == state.digest()


def test_a_batch_that_ran_again_with_other_numbers_has_the_greatest_of_each(store: Store) -> None:
    """Numbers of a read or a write have no stamp. A number that one event left out doesn't hide the other's."""
    source, output = Input(dataset=DATASET, snapshot=1), Output(dataset=DATASET, snapshot=2, parent=1)
    numbers: list[tuple[int | None, int | None]] = [(10, None), (7, 500), (None, 400)]
    emitted: list[Event] = [
        COMMITTED.model_copy(
            update={
                "inputs": (source.model_copy(update={"rows": rows, "bytes": size}),),
                "outputs": (output.model_copy(update={"rows": size, "bytes": rows, "files": rows}),),
                "incarnation": COMMITTED.producer,
                "sequence": number,
                "family_sequence": number,
            }
        )
        for number, (rows, size) in enumerate(numbers, 1)
    ]
    state = RowSet()
    for event in emitted:
        state.merge(map_event(event))
    assert [row.maxima for kind in (READ, WRITE) for row in state.rows(kind)] == [(10, 500), (1, 500, 10, 10, None)]
    for order in permutations(emitted):
        assert store.digest_of([[each] for each in order]) == state.digest()


@given(st.lists(st.tuples(pooled(), st.integers(0, 3_600)), max_size=8), st.integers(1, 4), st.integers())
@settings(max_examples=examples(25), deadline=None)
def test_order_of_what_is_appended_again_with_any_clock(
    store: Store, emitted: list[tuple[Event, int]], size: int, seed: int
) -> None:
    events_once = unique([event for event, _ in emitted])
    appended: list[Appended] = [
        (event, micros_of(event.time) - (ahead + again) * 1_000_000)
        for event, (_, ahead) in zip(events_once, emitted, strict=False)
        for again in (0, -40, 7)
    ]
    state = RowSet()
    for event, time in appended:
        state.merge(map_event(event, time))
    shuffled = [*appended]
    Random(seed).shuffle(shuffled)
    batches = [shuffled[at : at + size] for at in range(0, len(shuffled), size)]
    assert store.digest_of_appended(batches) == state.digest()


def test_of_two_variants_of_a_shape_both_are_kept_and_the_first_telling_of_each(store: Store) -> None:
    (one,) = [event for event in EXAMPLES if isinstance(event, JobLineage)]
    other = one.model_copy(update={"columns": (), "sequence": 900, "family_sequence": 900})
    again = [
        event.model_copy(update={"time": event.time + timedelta(hours=hours), "sequence": number, "job": None})
        for number, (event, hours) in enumerate([(one, 1), (other, -1), (one, -2)], 901)
    ]
    emitted: list[Event] = [one, other, *again]
    assert store.digest_of([emitted]) == digest_in_memory(emitted)
    assert store.digest_of([[each] for each in emitted]) == digest_in_memory(emitted)


@given(st.lists(pooled(), max_size=10).map(unique), st.integers(1, 4), st.integers())
@settings(max_examples=examples(25), deadline=None)
def test_order_batches_and_copies(store: Store, emitted: list[Event], size: int, seed: int) -> None:
    shuffled = [*emitted, *emitted[::2]]
    Random(seed).shuffle(shuffled)
    batches = [shuffled[at : at + size] for at in range(0, len(shuffled), size)]
    assert store.digest_of(batches) == digest_in_memory(emitted)


@given(st.lists(events(), max_size=4))
@settings(max_examples=examples(25), deadline=None)
def test_whatever_stands_in_an_event_comes_back_as_it_was(store: Store, emitted: list[Event]) -> None:
    numbered = [event.model_copy(update={"sequence": n, "family_sequence": n}) for n, event in enumerate(emitted, 1)]
    assert store.digest_of([numbered]) == digest_in_memory(numbered)
