"""Renders rows from the values of an event, without the event.

A template holds what all events of one shape have in common. For each column of a row it knows where the value comes
from: a constant, a slot of the event, its time, its stamp, the id of another row. All that varies stands in one list,
the environment, so a row is rendered by picking from it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from headwater.lineage.rows import ColumnType, Row, RowKind
from headwater.lineage.rows.columns import column_types, row_of
from headwater.lineage.rows.copy_format import column_count, copy_text, copy_value
from headwater.lineage.rows.values import HASH_BYTES, Value, encode

RowValues: TypeAlias = "list[Any]"
Picker: TypeAlias = "Callable[[Sequence[Any]], tuple[Any, ...]]"
_LENGTH: Final = struct.Struct(">i")
_LONG_BYTES: Final = 8


class Origin(IntEnum):
    """Where a value comes from."""

    SLOT = 0
    TIME = 1
    STAMP = 2
    TEXT = 3
    """A text that contains slots, such as JSON."""
    ID = 4
    """The id of a row of the same event."""
    CONSTANT = 5


class ValueSource(NamedTuple):
    """Where the value of a column comes from."""

    origin: Origin
    number: int
    """Which of this origin."""
    value: Any
    """The value in the event that the template was learned from."""

    @property
    def is_constant(self) -> bool:
        return self.origin is Origin.CONSTANT


class ValueLayout:
    """The places of an environment: slots, None, time, stamps, texts, ids."""

    def __init__(self, slots: int, stamps: int, texts: int) -> None:
        starts = (0, slots + 1, slots + 2, slots + 2 + stamps, slots + 2 + stamps + texts)
        self._start = dict(zip(Origin, starts, strict=False))

    def place(self, source: ValueSource) -> int:
        return self._start[source.origin] + source.number


class CopyLayout:
    """The places of an environment whose values are in COPY's format: longs, bytes, texts, ids.

    Longs and bytes stand without their lengths, which are part of a row's constant bytes; texts stand behind theirs.
    """

    def __init__(self, sources: Iterable[ValueSource], layout: ValueLayout) -> None:
        distinct = {layout.place(each): each for each in sources if not each.is_constant}
        ids = [place for place, each in distinct.items() if each.origin is Origin.ID]
        given = {place: each.value for place, each in distinct.items() if each.origin is not Origin.ID}
        longs, raws, texts = (
            [place for place, value in given.items() if type(value) is of] for of in (int, bytes, str)
        )
        self._place = {place: index for index, place in enumerate((*longs, *raws, *texts))}
        first = len(self._place)
        self._place.update((place, first + place - min(ids)) for place in ids)
        self._longs, self._raws, self._texts = picker(longs), picker(raws), picker(texts)
        self._pack = struct.Struct(f">{len(longs)}q").pack
        self._cut = struct.Struct(f"{_LONG_BYTES}s" * len(longs)).unpack

    def place(self, place: int) -> int:
        """Return where the value of a place of the environment stands."""
        return self._place[place]

    def environment(self, values: RowValues) -> list[bytes]:
        """Return the environment up to the ids."""
        longs = self._cut(self._pack(*self._longs(values)))
        return [*longs, *self._raws(values), *map(copy_text, self._texts(values))]


class RowTemplate:
    """Renders one row of an event."""

    __slots__ = ("_constants", "_copy_pattern", "_pick_copied", "_varying", "id", "kind")

    def __init__(self, kind: RowKind, sources: Sequence[ValueSource], layout: ValueLayout) -> None:
        """`sources` are those of all columns, the id first."""
        self.kind = kind
        self.id = _id_maker(kind, sources, layout)
        """Computes the row's id from an environment."""
        self._constants = [source.value if source.is_constant else None for source in sources]
        self._varying = [(at, layout.place(each)) for at, each in enumerate(sources) if at and not each.is_constant]

    def row(self, environment: RowValues) -> Row:
        values = self._constants.copy()
        values[0] = self.id(environment)
        for column, place in self._varying:
            values[column] = environment[place]
        return row_of(self.kind, values)


class CopyTemplate:
    """Renders one row of an event in COPY's format."""

    __slots__ = ("_pattern", "_pick", "id", "kind")

    def __init__(self, kind: RowKind, sources: Sequence[ValueSource], layout: ValueLayout, copied: CopyLayout) -> None:
        self.kind = kind
        self.id = _id_maker(kind, sources, layout)
        self._pattern = b"%b".join(map(_escape, _constant_pieces(kind, sources)))
        self._pick = picker([copied.place(layout.place(each)) for each in sources if not each.is_constant])

    def render(self, copied: list[bytes]) -> bytes:
        """Render the row. The environment already ends with its id."""
        return self._pattern % self._pick(copied)


def _constant_pieces(kind: RowKind, sources: Sequence[ValueSource]) -> tuple[bytes, ...]:
    """Return the constant bytes of a row. The length of a varying text is no part of them."""
    pieces = [column_count(len(sources))]
    for column, source in zip(column_types(kind), sources, strict=True):
        if source.is_constant:
            pieces[-1] += copy_value(column, source.value)
            continue
        if column is not ColumnType.TEXT:
            pieces[-1] += _LENGTH.pack(_LONG_BYTES if column is ColumnType.LONG else len(source.value))
        pieces.append(b"")
    return tuple(pieces)


def _id_maker(kind: RowKind, sources: Sequence[ValueSource], layout: ValueLayout) -> Callable[[RowValues], bytes]:
    """Return a function that computes the row's id, as `rows.values.hash_key` does."""
    key = sources[1 : 1 + len(kind.key)]
    if any(isinstance(each.value, str) and not each.is_constant for each in key):
        return _slow_id_maker(kind, key, layout)
    places = [layout.place(each) for each in key if not each.is_constant]
    if not places:
        number: bytes = sources[0].value
        return lambda _: number
    pattern, pick = _escape(encode((kind.name,))) + b"".join(map(_hash_pattern, key)), picker(places)

    def identify(environment: RowValues) -> bytes:
        return blake2b(pattern % pick(environment), digest_size=HASH_BYTES).digest()

    return identify


def _slow_id_maker(kind: RowKind, key: Sequence[ValueSource], layout: ValueLayout) -> Callable[[RowValues], bytes]:
    """Return a function for keys with varying texts, which are hashed with their lengths."""
    places = [(None if each.is_constant else layout.place(each), each.value) for each in key]

    def identify(environment: RowValues) -> bytes:
        values: list[Value] = [value if place is None else environment[place] for place, value in places]
        return blake2b(encode((kind.name, *values)), digest_size=HASH_BYTES).digest()

    return identify


def _hash_pattern(source: ValueSource) -> bytes:
    """Return the part of the pattern that is hashed: the value as `encode` encodes it."""
    if source.is_constant:
        return _escape(encode((source.value,)))
    if isinstance(source.value, str):
        return b"t%d:%b"
    return b"i%d;" if isinstance(source.value, int) else b"b%d:%%b" % len(source.value)


def _escape(data: bytes) -> bytes:
    """Escape constant bytes of a pattern."""
    return data.replace(b"%", b"%%")


def picker(places: Sequence[int]) -> Picker:
    """Return a function that picks these places as a tuple, however many there are."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda values: tuple([values[place] for place in places])
