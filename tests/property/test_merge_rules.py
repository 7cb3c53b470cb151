"""Whatever order events arrive in, however often, and however they are put together: the rows are the same."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.events import Event
from headwater.events.clock import micros_of
from headwater.events.kinds import KINDS
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import KINDS as ROWS
from headwater.lineage.rows import Row, RowSet, combine_rows, hash_key, merge_by_key
from headwater.lineage.sql.tables import column_names
from headwater.testing.examples import EXAMPLES
from headwater.testing.strategies import events
from tests.kit.effort import examples
from tests.kit.lineage.row_strategies import pooled, unique

pytestmark = pytest.mark.slow


def digest_of(emitted: list[Event]) -> str:
    state = RowSet()
    for event in emitted:
        state.merge(map_event(event))
    return state.digest()


@given(st.lists(pooled(), max_size=12).map(unique), st.randoms(use_true_random=False))
@settings(max_examples=examples(150), deadline=None)
def test_order_and_copies_change_nothing(emitted: list[Event], random: object) -> None:
    shuffled = [*emitted, *emitted[: len(emitted) // 2]]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert digest_of(shuffled) == digest_of(emitted)


@given(st.lists(events(), max_size=5).map(unique), st.randoms(use_true_random=False))
@settings(max_examples=examples(80), deadline=None)
def test_events_of_any_kind_and_content_are_merged_in_any_order(emitted: list[Event], random: object) -> None:
    numbered = [event.model_copy(update={"sequence": n, "family_sequence": n}) for n, event in enumerate(emitted, 1)]
    shuffled = [*numbered, *numbered]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert digest_of(shuffled) == digest_of(numbered)


@given(st.lists(pooled(), min_size=2, max_size=4).map(unique))
@settings(max_examples=examples(30), deadline=None)
def test_all_orders_of_few_events_give_the_same(emitted: list[Event]) -> None:
    assert len({digest_of(list(order)) for order in permutations(emitted)}) == 1


@given(st.lists(pooled(), max_size=9).map(unique), st.integers(0, 9), st.integers(0, 9))
@settings(max_examples=examples(80), deadline=None)
def test_what_is_merged_beforehand_is_merged_the_same(emitted: list[Event], one: int, other: int) -> None:
    low, high = sorted((one, other))
    state = RowSet()
    for some in (emitted[high:], emitted[:low], emitted[low:high]):
        rows = merge_by_key(row for event in some for row in map_event(event))
        state.merge(rows.values())
    assert state.digest() == digest_of(emitted)


@given(st.lists(pooled(), min_size=1, max_size=6).map(unique))
@settings(max_examples=examples(80), deadline=None)
def test_two_rows_of_a_key_become_one_in_any_order(emitted: list[Event]) -> None:
    by_key: dict[object, list[Row]] = {}
    for event in emitted:
        for row in map_event(event):
            by_key.setdefault((row.kind, row.key), []).append(row)
    for rows in by_key.values():
        for a in rows:
            assert combine_rows(a, a) == a
            for b in rows:
                assert combine_rows(a, b) == combine_rows(b, a)
                for c in rows:
                    assert combine_rows(combine_rows(a, b), c) == combine_rows(a, combine_rows(b, c))


@given(events())
@settings(max_examples=examples(150), deadline=None)
def test_rows_are_as_their_kind_declares_them(event: Event) -> None:
    for row in map_event(event, micros_of(event.time)):
        assert row.kind in ROWS
        assert len(row.key) == len(row.kind.key)
        assert len(row.maxima) == len(row.kind.maxima)
        assert row.kind.has_times or row.times == (2**63 - 1, -(2**63), -(2**63))
        for group, emitted in zip(row.kind.groups, row.groups, strict=True):
            assert emitted is None or len(emitted.values) == len(group.columns)
        assert len(row.values) == len(column_names(row.kind))
        assert row.id == hash_key(row.kind.name, row.key)
        values = [value for emitted in row.groups if emitted for value in emitted.values]
        for value in (*row.key, *row.maxima, *values):
            assert value is None or isinstance(value, (str, int, bytes))
            assert not isinstance(value, str) or "\0" not in value


def test_every_kind_of_event_tells_something() -> None:
    emitted = {event.kind: list(map_event(event)) for event in EXAMPLES}
    assert emitted.keys() == set(KINDS)
    silent = [kind for kind, rows in emitted.items() if len(rows) < 2]
    assert silent == [], "all but the mark that it arrived"
