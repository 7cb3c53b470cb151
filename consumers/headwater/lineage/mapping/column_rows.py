"""Makes rows of many events whose templates have one layout: copies of the constant bytes of each template, with
columns of values written over the places between them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import chain, repeat, zip_longest
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.events.avro.column_reader import Rows
from headwater.lineage.mapping.column_layout import LONG, TEXT, ColumnLayout
from headwater.lineage.mapping.row_builder import clean_text
from headwater.lineage.mapping.row_comparison import json_text
from headwater.lineage.mapping.slot_columns import SlotColumns
from headwater.lineage.rows.copy_blocks import CopyBlock, Matrix, bytes_of, matrix_of
from headwater.lineage.rows.values import HASH_BYTES

if TYPE_CHECKING:
    from headwater.lineage.mapping.event_templates import EventTemplate

_LENGTH: Final = struct.Struct(">i")
_MOST_CODES: Final = 1 << 62
"""More numbers don't fit into 64 bits."""
_SIGN: Final = np.uint64(1 << 63)


class EventColumns:
    """The values of events, by their places in an environment."""

    def __init__(self, layout: ColumnLayout, slots: SlotColumns, rows: Rows, times: Rows) -> None:
        """`rows` are the numbers of the events among `slots`."""
        self.layout: Final = layout
        self._slots = slots
        self._rows = rows
        self.times: Final = times
        self._lists: dict[int, list[Any]] = {}
        self._matrices: dict[int, Matrix] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def numbers(self, slot: int) -> Rows:
        return self._slots.numbers(self.layout.slots[slot].path, self._rows)

    def values(self, place: int) -> list[Any]:
        """Return the values of a place, as an environment holds them."""
        known = self._lists.get(place)
        if known is None:
            known = self._lists[place] = self._values(place)
        return known

    def _values(self, place: int) -> list[Any]:
        layout = self.layout
        if place < len(layout.slots):
            values = self._slot(place)
            return [clean_text(each) for each in values] if self.is_text(place) else values
        if place == layout.time - 1:
            return [None] * len(self)
        if place == layout.time:
            return listed(self.times)
        if place < layout.first_text:
            return bytes_of(self.matrix(place))
        pieces = layout.texts[place - layout.first_text]
        columns = (repeat(each) if isinstance(each, str) else map(json_text, self._slot(each)) for each in pieces)
        return list(map("".join, zip(*columns)))  # noqa: B905 - what repeats has no end

    def _slot(self, slot: int) -> list[Any]:
        """Return the values of a slot as they stand in the events."""
        path, width = self.layout.slots[slot]
        if width == LONG:
            return listed(self.numbers(slot))
        return self._slots.texts(path, self._rows) if width == TEXT else bytes_of(self.matrix(slot))

    def matrix(self, place: int) -> Matrix:
        """Return the values of a place that isn't a text, in COPY's format without their lengths."""
        known = self._matrices.get(place)
        if known is None:
            known = self._matrices[place] = self._matrix(place)
        return known

    def _matrix(self, place: int) -> Matrix:
        layout = self.layout
        if place < len(layout.slots):
            path, width = layout.slots[place]
            return _big_endian(self.numbers(place)) if width == LONG else self._slots.matrix(path, self._rows, width)
        if place == layout.time:
            return _big_endian(self.times)
        rank = layout.ranks[place - layout.time - 1]
        producer, sequence = (self.matrix(each) for each in layout.stamped[:2])
        moment = _big_endian(self.times.view(np.uint64) ^ _SIGN)
        return np.concatenate([np.full((len(self), 1), rank, np.uint8), moment, producer, sequence], axis=1)

    def is_text(self, place: int) -> bool:
        layout = self.layout
        if place < len(layout.slots):
            return layout.slots[place].width == TEXT
        return layout.first_text <= place < layout.first_id

    def texts(self, place: int) -> list[bytes]:
        """Return the values of a place that is a text."""
        return [each.encode() for each in self.values(place)]

    def add_ids(self, ids: list[bytes]) -> Matrix:
        """Add the ids of the next row."""
        place = self.layout.first_id + sum(each >= self.layout.first_id for each in self._lists)
        self._lists[place] = ids
        self._matrices[place] = matrix_of(ids, HASH_BYTES)
        return self._matrices[place]


class FactRenderer:
    """Renders the facts of events, given the templates that occur among them and which of them each event has."""

    def __init__(self, columns: EventColumns, templates: Sequence[EventTemplate], chosen: Rows) -> None:
        self._columns = columns
        self._templates = templates
        self._chosen = chosen

    def blocks(self) -> Iterator[tuple[str, CopyBlock]]:
        """Yield the rows with the names of their kinds, and add their ids to the columns."""
        chosen = self._chosen.tolist()
        for number, fact in enumerate(self._columns.layout.facts):
            copies = [each.copies[number] for each in self._templates]
            patterns = [each.key.pattern for each in copies]
            keys = zip(*self._key_columns(fact.key), strict=True)
            ids = self._columns.add_ids(
                [
                    blake2b(patterns[at] % key, digest_size=HASH_BYTES).digest()
                    for at, key in zip(chosen, keys, strict=True)
                ]
            )
            for rows, block in self._rendered([each.pieces for each in copies], fact.places):
                yield fact.kind, CopyBlock(ids[rows], block)

    def _key_columns(self, places: Sequence[int]) -> Iterator[Sequence[Any]]:
        for place in places:
            if self._columns.is_text(place):
                texts = self._columns.texts(place)
                yield list(map(len, texts))
                yield texts
            else:
                yield self._columns.values(place)

    def _rendered(self, pieces: Sequence[tuple[bytes, ...]], places: Sequence[int]) -> Iterator[tuple[Rows, Matrix]]:
        """Yield rows of equal size, with the numbers of their events."""
        columns = self._columns
        values: list[Matrix | list[bytes]] = []
        sizes = {each: number for number, each in enumerate(dict.fromkeys(tuple(map(len, each)) for each in pieces))}
        alike = [np.array([sizes[tuple(map(len, each))] for each in pieces])[self._chosen]]
        for place in places:
            if columns.is_text(place):
                texts = columns.texts(place)
                values.append(texts)
                alike.append(np.fromiter(map(len, texts), np.int64, len(texts)))
            else:
                values.append(columns.matrix(place))
        for rows in groups_of(alike):
            yield rows, self._block(pieces, [_chosen(each, rows) for each in values], rows)

    def _block(self, pieces: Sequence[tuple[bytes, ...]], values: Sequence[Matrix], rows: Rows) -> Matrix:
        used, number = np.unique(self._chosen[rows], return_inverse=True)
        blanks = [bytes(each.shape[1]) for each in values]
        images = [
            b"".join(chain.from_iterable(zip_longest(pieces[each], blanks, fillvalue=b""))) for each in used.tolist()
        ]
        block = matrix_of(images, len(images[0]))[number]
        at = 0
        for piece, value in zip(pieces[used[0]], values, strict=False):
            at += len(piece)
            block[:, at : at + value.shape[1]] = value
            at += value.shape[1]
        return block


def groups_of(columns: Sequence[Rows]) -> list[Rows]:
    """Return the numbers of those rows that are alike in all columns."""
    code = columns[0]
    for each in columns[1:]:
        size = int(each.max()) + 1
        if (int(code.max()) + 1) * size > _MOST_CODES:
            code = np.unique(code, return_inverse=True)[1]
        code = code * size + each
    values, code = np.unique(code, return_inverse=True)
    if len(values) == 1:
        return [np.arange(len(code))]
    order = np.argsort(code, kind="stable")
    return np.split(order, np.cumsum(np.bincount(code))[:-1])


def listed(values: Rows) -> list[int]:
    """Return numbers as those of Python."""
    numbers: list[int] = values.tolist()
    return numbers


def _chosen(values: Matrix | list[bytes], rows: Rows) -> Matrix:
    """Return some values as a matrix, texts behind their lengths."""
    if not isinstance(values, list):
        return values[rows]
    some = [values[each] for each in rows.tolist()]
    length = _LENGTH.pack(len(some[0]))
    return matrix_of([length + each for each in some], len(length) + len(some[0]))


def _big_endian(values: Any) -> Matrix:
    return values.astype(values.dtype.newbyteorder(">")).view(np.uint8).reshape(len(values), values.itemsize)  # type: ignore[no-any-return]
