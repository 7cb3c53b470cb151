"""Whatever text stands in an event, no row has one that a database refuses."""

from __future__ import annotations

from typing import Any, Literal, get_origin

import pytest
from pydantic import BaseModel

from headwater.events import Event
from headwater.events.base import StringMap
from headwater.lineage.mapping import map_event
from headwater.testing.examples import EXAMPLES

AWKWARD = "\0é\0"


def awkward(value: Any) -> Any:
    """The same with a character in each free text that no database but SQLite takes."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields.items()
        free = [name for name, field in fields if get_origin(field.annotation) is not Literal]
        return value.model_copy(update={name: awkward(getattr(value, name)) for name in free})
    if isinstance(value, tuple):
        return tuple(map(awkward, value))
    if isinstance(value, StringMap):
        return StringMap({awkward(name): awkward(each) for name, each in value.items()})
    return value + AWKWARD if type(value) is str else value


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.kind)
def test_no_row_has_a_character_of_code_0(event: Event) -> None:
    rows = list(map_event(awkward(event)))
    for row in rows:
        values = [value for group in row.groups if group for value in group.values]
        for value in (*row.key, *row.maxima, *values):
            assert not isinstance(value, str) or "\0" not in value, f"{row.kind.name}: {value!r}"


def test_the_awkward_character_is_there_at_all() -> None:
    """A test of the test: where the law doesn't take it away, it arrives."""
    found = [awkward(event).model_dump_json() for event in EXAMPLES]
    assert all("\\u0000" in text for text in found)
