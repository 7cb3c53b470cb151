"""Finds out where the values of an event's rows come from, by mapping a second event that differs in every slot.

The second event has sentinels in its slots: numbers and texts that occur nowhere else. What is the same in the rows of
both events is constant. What differs has to be a sentinel, or contain one, and has to be explained by the same slot in
both events; otherwise the event isn't learned. So `map_event` alone decides what the rows are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Final
from uuid import UUID

from pydantic import BaseModel
from pydantic_core import to_json

from headwater.events.avro.template_cache import Template, ValuePath
from headwater.events.clock import micros_of
from headwater.events.envelope import Event
from headwater.lineage.mapping.events import map_event
from headwater.lineage.mapping.row_builder import MAX_CLOCK_AHEAD, RowBuilder, clean_text
from headwater.lineage.mapping.row_templates import Origin, ValueSource
from headwater.lineage.rows import Row
from headwater.lineage.rows.columns import NO_STAMP, RowTuple, packer

_LONG: Final = 2_305_843_009_213_000_000
_TIME: Final = datetime(4000, 1, 1, tzinfo=timezone.utc)
_APPEND_TIME: Final = micros_of(_TIME) - 2 * MAX_CLOCK_AHEAD
"""So long before the second event that its time is cut: a row that takes the event's own time isn't explained."""
_EMBEDDED: Final = re.compile("\ue000([0-9]+)\ue001|230584300921([0-9]{7})")


class NotLearnableError(Exception):
    """A value of the rows can't be explained by the event's slots."""


class RowComparison:
    """Explains the rows of one event."""

    def __init__(self, event: Event, append_time: int | None, slots: Template) -> None:
        self._values = slots.values
        sentinels = {path: _sentinel(event, path, number) for path, number in slots.places.items()}
        second = _replaced(event, _tree(sentinels))
        self._first_build, self._second_build = RowBuilder(event, append_time), RowBuilder(second, _APPEND_TIME)
        self._second_rows = list(map_event(second, _APPEND_TIME))
        self.texts: list[tuple[str | int, ...]] = []
        """Texts that contain slots: constant pieces, and the numbers of slots between them."""
        self.ranks: list[int] = []
        """The ranks of stamps."""
        self.ids: dict[bytes, int] = {}
        """The numbers of those rows to whose ids other rows may refer, by the ids in the second event."""

    def pairs(self, rows: Sequence[Row]) -> list[tuple[Row, Row]]:
        """Return each row of the event with the same row of the second event."""
        if [row.kind for row in rows] != [row.kind for row in self._second_rows]:
            raise NotLearnableError
        return list(zip(rows, self._second_rows, strict=True))

    def sources(self, first: Row, second: Row) -> list[ValueSource]:
        """Return the sources of a row's columns. The id of a row whose key varies is a constant here too."""
        pack = packer(first.kind)
        columns: tuple[RowTuple, RowTuple] = (pack(first), pack(second))
        sources = [self._source(*each) for each in list(zip(*columns, strict=True))[1:]]
        return [ValueSource(Origin.CONSTANT, 0, first.id), *sources]

    def _source(self, first: Any, second: Any) -> ValueSource:
        if first == second:
            return ValueSource(Origin.CONSTANT, 0, first)
        if type(first) is not type(second):
            raise NotLearnableError
        if isinstance(second, int):
            return self._of_number(first, second)
        return self._of_bytes(first, second) if isinstance(second, bytes) else self._of_text(first, second)

    def _of_number(self, first: int, second: int) -> ValueSource:
        if second == self._second_build.time and first == self._first_build.time:
            return ValueSource(Origin.TIME, 0, first)
        return self._of_slot(first, second - _LONG)

    def _of_slot(self, first: Any, number: int) -> ValueSource:
        if not (0 <= number < len(self._values) and clean(self._values[number]) == first):
            raise NotLearnableError
        return ValueSource(Origin.SLOT, number, first)

    def _of_bytes(self, first: bytes, second: bytes) -> ValueSource:
        if second in self.ids:
            return ValueSource(Origin.ID, self.ids[second], first)
        if NO_STAMP not in {first, second} and second[0] == first[0]:
            rank = first[0]
            if (first, second) == (self._first_build.stamp(rank), self._second_build.stamp(rank)):
                if rank not in self.ranks:
                    self.ranks.append(rank)
                return ValueSource(Origin.STAMP, self.ranks.index(rank), first)
        return self._of_slot(first, int.from_bytes(second, "big") - _LONG)

    def _of_text(self, first: str, second: str) -> ValueSource:
        pieces = _pieces(second)
        if len(pieces) == 3 and pieces[::2] == ("", ""):
            return self._of_slot(first, int(pieces[1]))
        if len(pieces) == 1 or render_text(pieces, self._values) != first:
            raise NotLearnableError
        self.texts.append(pieces)
        return ValueSource(Origin.TEXT, len(self.texts) - 1, first)


def _pieces(text: str) -> tuple[str | int, ...]:
    pieces: list[str | int] = []
    at = 0
    for found in _EMBEDDED.finditer(text):
        number = found[1] or int(found[0]) - _LONG
        pieces += (text[at : found.start()], int(number))
        at = found.end()
    return (*pieces, text[at:])


def render_text(pieces: Sequence[str | int], values: Sequence[Any]) -> str:
    """Return a JSON text with the values of its slots. What the pieces hold is clean already."""
    if any(not isinstance(each, str) and each >= len(values) for each in pieces):
        raise NotLearnableError
    return "".join([each if isinstance(each, str) else json_text(values[each]) for each in pieces])


def json_text(value: Any) -> str:
    """Return a value as it stands in a JSON text; of a text what stands between the quotes."""
    text = str(clean_text(to_json(value).decode()))
    return text[1:-1] if isinstance(value, str) else text


def clean(value: Any) -> Any:
    """Return the value as columns hold it."""
    return clean_text(value) if isinstance(value, str) else value


def _sentinel(event: Event, path: ValuePath, number: int) -> Any:
    value: Any = event
    for step in path:
        value = value[step] if isinstance(step, int) else getattr(value, step)
    if isinstance(value, datetime):
        return _TIME + timedelta(microseconds=number)
    if isinstance(value, UUID):
        return UUID(int=_LONG + number)
    if isinstance(value, str):
        return f"\ue000{number}\ue001"
    if type(value) is int:
        return _LONG + number
    raise NotLearnableError


def _tree(leaves: Mapping[ValuePath, Any]) -> dict[str | int, Any]:
    """Return nested dicts, one for each step of a path."""
    tree: dict[str | int, Any] = {}
    for path, leaf in leaves.items():
        node = tree
        for step in path[:-1]:
            node = node.setdefault(step, {})
        node[path[-1]] = leaf
    return tree


def _replaced(value: Any, tree: Any) -> Any:
    """Return a model or a tuple with other values where the tree has some."""
    if not isinstance(tree, dict):
        return tree
    if isinstance(value, BaseModel):
        return value.model_copy(update={name: _replaced(getattr(value, name), each) for name, each in tree.items()})
    if isinstance(value, tuple):
        return tuple(_replaced(each, tree[at]) if at in tree else each for at, each in enumerate(value))
    raise NotLearnableError
