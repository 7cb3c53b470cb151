"""Every transaction writes rows in one order: two that meet can't deadlock."""

from __future__ import annotations

from typing import Any, Literal, get_origin

import pytest
from pydantic import BaseModel

from headwater.events import Event
from headwater.events.base import StringMap
from headwater.lineage.bulk import pack_rows
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import KINDS
from headwater.lineage.sql.upsert import ORDER
from headwater.testing.examples import COMMITTED, EXAMPLES

NUMBERS = (5, 2, 300, 70_000, 2**40, 7, 1)


def test_rows_are_sorted_by_their_tables_primary_key() -> None:
    events = (
        COMMITTED.model_copy(update={"barrier": barrier, "sequence": n, "family_sequence": n})
        for n, barrier in enumerate(NUMBERS, 1)
    )
    for packed in pack_rows(row for event in events for row in map_event(event)):
        places = {"id": 0, **{column.name: number for number, column in enumerate(packed.kind.key, 1)}}
        keys = [tuple(row[places[name]] for name in packed.kind.primary_key) for row in packed.rows]
        assert keys == sorted(keys), packed.name
        if packed.name == "reads":
            assert [key[0] for key in keys][:: len(keys) // len(NUMBERS)] == sorted(NUMBERS)


def test_kinds_are_in_one_order_whatever_comes_first() -> None:
    rows = [row for event in EXAMPLES for row in map_event(event)]
    names = [each.name for each in pack_rows(rows)]
    assert names == [each.name for each in pack_rows(reversed(rows))]
    assert names == sorted(names, key=ORDER.__getitem__)
    assert set(names) <= {kind.name for kind in KINDS}


# Whatever text stands in an event, no row has one that a database refuses.


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
