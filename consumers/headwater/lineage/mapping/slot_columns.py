"""Reads the slots of many events of one kind at once, and what stands between the slots.

Two events have the same template if all their bytes outside of slots are the same: these bytes alone say where slots
are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.events.avro.codec import current_schema
from headwater.events.avro.column_reader import AvroColumns, FoundSpans, FoundValues, ReadColumns, Rows
from headwater.events.avro.framing import HEADER_BYTES
from headwater.events.kinds import KINDS
from headwater.lineage.rows.copy_blocks import Matrix


class SlotColumns:
    """The slots of events, by path."""

    def __init__(self, found: ReadColumns, count: int) -> None:
        self._found = found
        self._bytes = found.data.tobytes()
        self._texts = _Texts()
        self._numbers: dict[str, Rows] = {}
        self._spans: dict[str, tuple[Rows, Rows]] = {}
        self._count = count

    def numbers(self, path: str, rows: Rows) -> Rows:
        """Return the numbers of these events, all of which have one."""
        known = self._numbers.get(path)
        if known is None:
            known = self._numbers[path] = np.zeros(self._count, np.int64)
            found = self._found.numbers[path]
            known[found.rows] = found.values
        return known[rows]

    def matrix(self, path: str, rows: Rows, size: int) -> Matrix:
        """Return the values of these events, all of which have so many bytes."""
        return np.lib.stride_tricks.sliding_window_view(self._found.data, size)[self._spans_of(path)[0][rows]]

    def texts(self, path: str, rows: Rows) -> list[str]:
        """Return texts of these events. One that is no UTF-8 is empty: see `are_texts`."""
        return [each or "" for each in self._texts_of(path, rows)]

    def are_texts(self, path: str, rows: Rows) -> Any:
        """Return which values of these events are UTF-8."""
        return np.array([each is not None for each in self._texts_of(path, rows)], np.bool_)

    def _texts_of(self, path: str, rows: Rows) -> list[str | None]:
        begins, ends = (each[rows].tolist() for each in self._spans_of(path))
        data, known = self._bytes, self._texts
        return [known[data[begin:end]] for begin, end in zip(begins, ends, strict=True)]

    def _spans_of(self, path: str) -> tuple[Rows, Rows]:
        known = self._spans.get(path)
        if known is None:
            begins, ends = np.zeros(self._count, np.int64), np.zeros(self._count, np.int64)
            found = self._found.spans[path]
            begins[found.rows], ends[found.rows] = found.begins, found.ends
            known = self._spans[path] = begins, ends
        return known


class _Texts(dict[bytes, "str | None"]):
    """Texts by their bytes; None for what is no UTF-8."""

    def __missing__(self, data: bytes) -> str | None:
        try:
            found: str | None = data.decode()
        except UnicodeDecodeError:
            found = None
        self[data] = found
        return found


class SlotReader:
    """Reads events that were written with the newest schema of a kind."""

    def __init__(self, kind: str, varying: frozenset[str], fields: int) -> None:
        self._columns = AvroColumns(
            current_schema(KINDS[kind]), lambda path: path.rpartition(".")[2] in varying, fields
        )

    def read(self, events: Sequence[bytes]) -> tuple[SlotColumns, list[bytes | None]]:
        """Return the slots, and for each event all bytes outside of them; None if it has to be read by itself."""
        found = self._columns.read(events, HEADER_BYTES)
        lengths = np.fromiter(map(len, events), np.int64, len(events))
        slots: list[FoundValues | FoundSpans] = [*found.numbers.values(), *found.spans.values()]
        data, sizes = _outside_of(slots, found, lengths)
        ends = np.cumsum(sizes)
        places = zip((ends - sizes).tolist(), ends.tolist(), found.is_odd.tolist(), strict=True)
        return SlotColumns(found, len(events)), [None if is_odd else data[start:end] for start, end, is_odd in places]


def _outside_of(slots: Sequence[FoundValues | FoundSpans], found: ReadColumns, lengths: Rows) -> tuple[bytes, Rows]:
    """Return all bytes outside of slots, and how many each event has. Those that aren't plain have no slots."""
    end = int(lengths.sum())
    edges, sizes = np.zeros(end + 1, np.int8), lengths.copy()
    for each in slots:
        is_plain = ~found.is_odd[each.rows]
        starts, ends = each.starts[is_plain], each.ends[is_plain]
        edges[starts] += 1
        edges[ends] -= 1
        sizes[each.rows[is_plain]] -= ends - starts
    is_slot = np.cumsum(edges[:-1], dtype=np.int8)
    return found.data[:end][is_slot == 0].tobytes(), sizes
