"""Whatever order events arrive in, however often, and however they are put together: the rows are the same."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import permutations
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.events import (
    Committed,
    Event,
    JobName,
    JobStatus,
    JobStatusChanged,
)
from headwater.events.clock import micros_of
from headwater.events.kinds import KINDS
from headwater.events.parts import cut
from headwater.lineage.law import State, changes, collapsed
from headwater.lineage.rows import KINDS as ROWS
from headwater.lineage.rows import Row, merged
from headwater.testing.examples import EXAMPLES
from headwater.testing.strategies import events
from tests.property.effort import examples

DAY = timedelta(days=1)
BEGAN: datetime = EXAMPLES[0].time
PRODUCERS = (UUID(int=1), UUID(int=2))
RUNS = (UUID(int=11), UUID(int=12))
JOBS = (JobName(name="a"), JobName(name="b"))


@st.composite
def pooled(draw: st.DrawFn) -> Event:
    """One of few producers, jobs and runs, at one of few times: so that events have rows in common."""
    event = draw(st.sampled_from(EXAMPLES))
    update = {
        "producer": draw(st.sampled_from(PRODUCERS)),
        "sequence": draw(st.integers(1, 200)),
        "family_sequence": draw(st.integers(1, 200)),
        "time": BEGAN + draw(st.sampled_from([-DAY, timedelta(0), timedelta(microseconds=1), DAY])),
        "job": draw(st.sampled_from(JOBS)),
        "run": draw(st.sampled_from(RUNS)),
    }
    if isinstance(event, JobStatusChanged):
        update |= {"status": draw(st.sampled_from(JobStatus)), "inferred": draw(st.booleans())}
    if isinstance(event, Committed):
        update |= {"barrier": draw(st.integers(1, 3)), "incarnation": None}
    return event.model_copy(update=update)


def unique(told: list[Event]) -> list[Event]:
    """A number of a producer is one event's."""
    return list({event.event_id: event for event in told}.values())


def digest_of(told: list[Event]) -> str:
    state = State()
    for event in told:
        state.merge(changes(event))
    return state.digest()


@given(st.lists(pooled(), max_size=12).map(unique), st.randoms(use_true_random=False))
@settings(max_examples=examples(150), deadline=None)
def test_order_and_copies_change_nothing(told: list[Event], random: object) -> None:
    shuffled = [*told, *told[: len(told) // 2]]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert digest_of(shuffled) == digest_of(told)


@given(st.lists(events(), max_size=5).map(unique), st.randoms(use_true_random=False))
@settings(max_examples=examples(80), deadline=None)
def test_events_of_any_kind_and_content_are_merged_in_any_order(told: list[Event], random: object) -> None:
    numbered = [event.model_copy(update={"sequence": n, "family_sequence": n}) for n, event in enumerate(told, 1)]
    shuffled = [*numbered, *numbered]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert digest_of(shuffled) == digest_of(numbered)


@given(st.lists(pooled(), min_size=2, max_size=4).map(unique))
@settings(max_examples=examples(30), deadline=None)
def test_all_orders_of_few_events_give_the_same(told: list[Event]) -> None:
    assert len({digest_of(list(order)) for order in permutations(told)}) == 1


@given(st.lists(pooled(), max_size=9).map(unique), st.integers(0, 9), st.integers(0, 9))
@settings(max_examples=examples(80), deadline=None)
def test_what_is_merged_beforehand_is_merged_the_same(told: list[Event], one: int, other: int) -> None:
    low, high = sorted((one, other))
    state = State()
    for some in (told[high:], told[:low], told[low:high]):
        rows = collapsed(row for event in some for row in changes(event))
        state.merge(rows.values())
    assert state.digest() == digest_of(told)


@given(st.lists(pooled(), min_size=1, max_size=6).map(unique))
@settings(max_examples=examples(80), deadline=None)
def test_two_rows_of_a_key_become_one_in_any_order(told: list[Event]) -> None:
    by_key: dict[object, list[Row]] = {}
    for event in told:
        for row in changes(event):
            by_key.setdefault((row.kind, row.key), []).append(row)
    for rows in by_key.values():
        for a in rows:
            assert merged(a, a) == a
            for b in rows:
                assert merged(a, b) == merged(b, a)
                for c in rows:
                    assert merged(merged(a, b), c) == merged(a, merged(b, c))


@given(events())
@settings(max_examples=examples(150), deadline=None)
def test_rows_are_as_their_kind_declares_them(event: Event) -> None:
    for row in changes(event, micros_of(event.time)):
        assert row.kind in ROWS
        assert len(row.key) == len(row.kind.key)
        assert len(row.fixed) == len(row.kind.fixed)
        assert row.kind.mortal or row.span == (2**63 - 1, -(2**63), -(2**63))
        for group, told in zip(row.kind.groups, row.groups or row.kind.blank, strict=True):
            assert told is None or len(told.values) == len(group.columns)
        values = [value for told in row.groups if told for value in told.values]
        for value in (*row.key, *row.fixed, *values):
            assert value is None or isinstance(value, (str, int, bytes))
            assert not isinstance(value, str) or "\0" not in value


def test_every_kind_of_event_tells_something() -> None:
    told = {event.kind: list(changes(event)) for event in EXAMPLES}
    assert told.keys() == set(KINDS)
    silent = [kind for kind, rows in told.items() if len(rows) < 2]
    assert silent == [], "all but the mark that it arrived"


def test_an_event_cut_into_parts_tells_what_it_would_have_told_whole() -> None:
    """Apart from what is counted by events: numbers that arrived, parts themselves, edges, variants of shapes."""
    apart = {"received", "parts", "edges", "shapes", "shape_sides", "shape_columns", "writes"}
    whole = next(event for event in EXAMPLES if isinstance(event, Committed))
    parts = cut(whole.model_copy(update={"inputs": whole.inputs * 1}), 400)
    assert len(parts) > 1

    def rows_of(told: list[Event]) -> set[object]:
        state = State()
        for event in told:
            state.merge(changes(event))
        return {(row.kind.name, row.key) for row in state.rows() if row.kind.name not in apart}

    assert rows_of(list(parts)) == rows_of([whole])
