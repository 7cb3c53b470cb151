"""The short way to rows gives what the law gives, of whatever comes, in batches of any size."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.events import AlterTable, Committed, Event, JobLineage, JobName, JobStatusChanged, TableName
from headwater.events.avro import Codec, DecodeError
from headwater.events.changes import SetComment, SetProperty
from headwater.events.jobs import Input, Output
from headwater.lineage.mapping import BatchMapper, map_event
from headwater.lineage.rows import Row, RowSet
from headwater.testing.examples import EXAMPLES
from headwater.testing.strategies import events
from tests.kit.effort import examples
from tests.kit.lineage.row_strategies import pooled, unique

CODEC = Codec()
LEARNED = (Committed, JobLineage, AlterTable, JobStatusChanged)
COMMITS = [each for each in EXAMPLES if isinstance(each, LEARNED)]
TEXTS = st.sampled_from(
    ["", "a", '"\\\n', "\0", "é\ue000", "\u2028", "\ue0001\ue001", "2305843009213000001"]
) | st.text(max_size=5)
NUMBERS = st.none() | st.integers(1, 3) | st.integers(-(2**63), 2**63 - 1)
NOW = st.sampled_from([None, 0, 1_767_000_000_000_000, 2**60])


def by_the_law(emitted: list[tuple[Event, int | None]]) -> str:
    state = RowSet()
    for event, appended in emitted:
        state.merge(map_event(event, appended))
    return state.digest()


def by_the_short_way(emitted: list[tuple[Event, int | None]], size: int) -> str:
    state, mapper = RowSet(), BatchMapper()
    for number, (event, appended) in enumerate(emitted, 1):
        assert mapper.add(CODEC.encode(event), appended) is None
        if number % size == 0:
            state.merge(rows_of(mapper))
    state.merge(rows_of(mapper))
    assert rows_of(mapper) == []
    return state.digest()


def rows_of(mapper: BatchMapper) -> list[Row]:
    rows = list(mapper.drain().rows)
    assert len({row.id for row in rows}) == len(rows)
    return rows


@st.composite
def alike(draw: st.DrawFn) -> Event:
    """Commits and shapes that have most in common, as those of one job have."""
    event = draw(st.sampled_from(COMMITS))
    update: dict[str, object] = {
        "sequence": draw(st.integers(1, 200)),
        "family_sequence": draw(st.integers(1, 200)),
        "producer": draw(st.sampled_from([UUID(int=1), UUID(int=2)])),
        "time": event.time + timedelta(seconds=draw(st.integers(-9, 9))),
        "run": draw(st.sampled_from([None, UUID(int=3), UUID(int=4)])),
    }
    if isinstance(event, Committed):
        outputs = draw(st.lists(st.sampled_from(event.outputs), max_size=2))
        made = st.none() | st.lists(st.integers(-1, len(event.inputs)), max_size=3).map(tuple)
        changed = [
            {
                "snapshot": draw(NUMBERS),
                "version": draw(st.sampled_from([None, "7", "\0", "é"])),
                "parent": draw(NUMBERS),
                "rows": draw(st.none() | st.integers(0, 2**63 - 1)),
                "made_from": draw(made),
                "table": draw(st.sampled_from([each.table, TableName(catalog="%", database="%d", table="%%b")])),
                "candidates": draw(st.sampled_from([(), (4, 5)])),
            }
            for each in outputs
        ]
        update["outputs"] = tuple(each.model_copy(update=new) for each, new in zip(outputs, changed, strict=True))
        update["job"] = draw(st.sampled_from([event.job, event.job, JobName(name="10%d of %b %%")]))
        update["barrier"] = draw(st.integers(1, 3) | st.integers(-(2**63), 2**63 - 1))
        update["statement"] = draw(NUMBERS)
        update["application"] = draw(st.sampled_from(["", "app", "\0é"]))
        update["incarnation"] = draw(st.sampled_from([None, UUID(int=5)]))
    if isinstance(event, AlterTable):
        changes = st.builds(SetProperty, key=st.just("owner"), value=TEXTS) | st.builds(SetComment, comment=TEXTS)
        update["changes"] = tuple(draw(st.lists(changes, max_size=2)))
        update["schema_id"] = draw(NUMBERS)
        update["produced"] = draw(NUMBERS)
    return event.model_copy(update=update)


@pytest.mark.slow
@given(st.lists(alike(), max_size=12).map(unique), NOW, st.integers(1, 5))
@settings(max_examples=examples(150), deadline=None)
def test_of_events_that_are_alike(emitted: list[Event], appended: int | None, size: int) -> None:
    both = [(event, appended) for event in emitted]
    assert by_the_short_way(both, size) == by_the_law(both)


@st.composite
def of_few_shapes(draw: st.DrawFn) -> list[Event]:
    """Events of two shapes, which differ in what slots hold."""
    shapes = draw(st.lists(alike(), min_size=1, max_size=2))
    return [draw(with_other_slots(draw(st.sampled_from(shapes)))) for _ in range(draw(st.integers(1, 12)))]


def with_other_slots(event: Event) -> st.SearchStrategy[Event]:
    slots: dict[str, st.SearchStrategy[object]] = {
        "sequence": st.integers(1, 3) | st.integers(1, 2**63 - 1),
        "family_sequence": st.integers(1, 200),
        "producer": st.sampled_from([UUID(int=1), UUID(int=2), UUID(int=2**127 + 1)]),
        "time": st.sampled_from([0, 1, 2**26]).map(lambda seconds: event.time + timedelta(seconds=seconds)),
        "application": TEXTS,
        "run": st.sampled_from([UUID(int=3), UUID(int=4)]) if event.run is not None else st.none(),
    }
    if isinstance(event, Committed):
        slots["barrier"] = st.integers(1, 3) | st.integers(-(2**63), 2**63 - 1)
        slots["outputs"] = st.tuples(*map(with_other_numbers, event.outputs))
        slots["inputs"] = st.tuples(*map(with_other_numbers, event.inputs))
    return st.fixed_dictionaries(slots).map(lambda update: event.model_copy(update=update))


def with_other_numbers(place: Input | Output) -> st.SearchStrategy[Input | Output]:
    wanted = {"snapshot": st.integers(-(2**63), 2**63 - 1), "version": TEXTS, "rows": st.integers(0, 2**63 - 1)}
    slots = {name: each for name, each in wanted.items() if getattr(place, name) is not None}
    return st.fixed_dictionaries(slots).map(lambda update: place.model_copy(update=update))


@given(of_few_shapes().map(unique), st.lists(NOW, min_size=12, max_size=12), st.integers(3, 12))
@settings(max_examples=examples(60), deadline=None)
def test_of_few_shapes(emitted: list[Event], appended: list[int | None], size: int) -> None:
    both = list(zip(emitted, appended, strict=False))
    assert by_the_short_way(both, size) == by_the_law(both)


@pytest.mark.slow
@given(st.lists(st.tuples(pooled(), NOW), max_size=10), st.integers(1, 4))
@settings(max_examples=examples(100), deadline=None)
def test_of_all_kinds(emitted: list[tuple[Event, int | None]], size: int) -> None:
    assert by_the_short_way(emitted, size) == by_the_law(emitted)


@given(st.lists(st.tuples(events(*LEARNED), NOW), max_size=4), st.integers(1, 3))
@settings(max_examples=examples(25), deadline=None)
def test_of_whatever_stands_in_them(emitted: list[tuple[Event, int | None]], size: int) -> None:
    again = [*emitted, *emitted]
    assert by_the_short_way(again, size) == by_the_law(emitted)
    assert by_the_short_way([*again, *again], 2 * size) == by_the_law(emitted)


@pytest.mark.slow
@given(
    st.sampled_from(COMMITS), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=3), st.booleans()
)
@settings(max_examples=examples(400), deadline=None)
def test_of_broken_bytes(event: Event, faults: list[tuple[int, int]], is_known: bool) -> None:
    """They are refused as the codec refuses them, and nothing of them is taken in."""
    data = bytearray(CODEC.encode(event))
    for place, value in faults:
        data[place % len(data)] = value
    gathering, wanted = BatchMapper(), RowSet()
    if is_known:
        gathering.add(CODEC.encode(event))
        wanted.merge(map_event(event))
    try:
        found = CODEC.decode(bytes(data))
    except DecodeError as e:
        wanted_error: str | None = str(e)
    else:
        wanted_error = None
        if isinstance(found, Event):
            wanted.merge(map_event(found))
    error = None
    try:
        gathering.add(bytes(data))
    except DecodeError as e:
        error = str(e)
    state = RowSet()
    state.merge(rows_of(gathering))
    assert (error, state.digest()) == (wanted_error, wanted.digest())
