"""The JSON form of events: nothing is lost in it, also where a reader's numbers are doubles."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from headwater.events.base import Model
from headwater.events.changes import TableChange
from headwater.events.envelope import Event
from headwater.events.kinds import KINDS, AnyEvent
from headwater.events.presentation import event_object, format_line, json_line, line_of
from headwater.events.presentation.catalog import describe_change
from headwater.terminal import printable
from headwater.testing.strategies import events, models

pytestmark = pytest.mark.slow

ADAPTER: TypeAdapter[Event] = TypeAdapter(AnyEvent)
CHANGES: tuple[type[Model], ...] = get_args(get_args(TableChange)[0])


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_same_event_comes_back(kind: type[Event]) -> None:
    @given(events(kind))
    def law(event: Event) -> None:
        line = json_line(event_object(event))
        assert kind.model_validate(json.loads(line)) == event
        assert ADAPTER.validate_json(line) == event

    law()


@given(events())
def test_a_reader_whose_numbers_are_doubles_loses_nothing(event: Event) -> None:
    line = json_line(event_object(event))
    assert json.loads(line, parse_int=lambda digits: int(float(digits))) == json.loads(line)
    assert all(abs(number) < 2**53 for number in _numbers(json.loads(line)))


@given(events())
def test_a_line_is_one_line_whatever_the_names_are(event: Event) -> None:
    for line in (json_line(event_object(event)), format_line(line_of(event))):
        assert printable(line) == line
        assert len(line.splitlines()) == 1
    assert json_line(event_object(event)).isascii()


@given(st.one_of([models(change) for change in CHANGES]))
def test_every_kind_of_change_has_words(change: Model) -> None:
    assert describe_change(change)


@given(st.lists(events(), min_size=2, max_size=4))
def test_lines_sort_by_time_as_texts(many: list[Event]) -> None:
    times = [(event_object(event)["time"], event.time) for event in many]
    assert sorted(text for text, _ in times) == [text for text, _ in sorted(times, key=lambda each: each[1])]


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, int):
        yield value
