"""Reads many events of one schema at once: each field of all events in one step, by numpy.

Avro says where each value ends, so all events are walked side by side: `at` is where each of them is. What isn't the
plain case in any way (a number that is too long, a list that goes on for ever, bytes that end elsewhere) is left to the
reader of single events, which also says what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from headwater.events.avro.raw_reader import physical
from headwater.events.avro.schema_cache import WriterSchema

Rows: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
DATASET: Final = "DatasetId"
_LONGEST_LIST: Final = 512
_FEW: Final = 8
"""Where so few events go on with a list for long, they are quicker one by one."""
_LONG: Final = 24
_PADDING: Final = bytes(16)
_ENVELOPE: Final = ("schema_version", "producer", "sequence", "time", "application", "run")
_WANTED: Final = frozenset([*_ENVELOPE, "job.namespace", "job.name", "part.number", "part.of", "barrier"])


class FoundValues(NamedTuple):
    """The values of a number in some of the events."""

    rows: Rows
    values: Rows


class FoundSpans(NamedTuple):
    """Where a text, or other bytes, stand in some of the events."""

    rows: Rows
    begins: Rows
    ends: Rows


@dataclass
class ReadColumns:
    """What was found in the events, by the path of the field."""

    data: np.ndarray[Any, np.dtype[np.uint8]]
    is_odd: np.ndarray[Any, np.dtype[np.bool_]]
    """Which events aren't the plain case: nothing that was found of them holds."""
    numbers: dict[str, FoundValues] = field(default_factory=dict)
    spans: dict[str, FoundSpans] = field(default_factory=dict)
    datasets: list[FoundSpans] = field(default_factory=list)
    """Whole DatasetId records, in the order in which they stand in each event."""


class AvroColumns:
    """Reads events of one schema."""

    def __init__(self, schema: WriterSchema) -> None:
        self._schema = physical(json.loads(schema.text))
        self._named: dict[str, Any] = {}
        _collect_named(self._schema, self._named)

    def read(self, events: Sequence[bytes], offset: int) -> ReadColumns:
        """Read events whose Avro bytes begin at an offset."""
        lengths = np.fromiter(map(len, events), np.int64, len(events))
        ends = np.cumsum(lengths)
        data = np.frombuffer(b"".join([*events, _PADDING]), np.uint8)
        walk = _Walk(data, ends - lengths + offset, ends, self._named)
        walk.visit(self._schema, np.arange(len(events)), "")
        walk.found.is_odd |= walk.at != ends
        return walk.found


class _Walk:
    def __init__(self, data: Any, at: Rows, ends: Rows, named: dict[str, Any]) -> None:
        self.found: Final = ReadColumns(data, np.zeros(len(at), np.bool_))
        self.at = at
        self._data = data
        self._ends = ends
        self._named = named

    def visit(self, schema: Any, rows: Rows, path: str | None) -> None:
        """Walk over a value in these events. `path` is given where something of it may be wanted."""
        if isinstance(schema, list):
            self._union(schema, rows, path)
            return
        name = schema["type"] if isinstance(schema, dict) else schema
        if name in self._named:
            self.visit(self._named[name], rows, path)
        elif name == "record":
            self._record(schema, rows, path)
        elif name in {"array", "map"}:
            self._list(schema, rows)
        elif name in {"string", "bytes"}:
            self._bytes(rows, path)
        elif name == "fixed":
            self._skip(rows, schema["size"], path)
        elif name != "null":
            self._number(name, schema, rows, path)

    def _record(self, schema: Any, rows: Rows, path: str | None) -> None:
        begins = self.at[rows] if schema["name"] == DATASET else None
        for each in schema["fields"]:
            inner = None if path is None else f"{path}.{each['name']}" if path else each["name"]
            self.visit(each["type"], rows, inner)
        if begins is not None:
            self.found.datasets.append(FoundSpans(rows, begins, self.at[rows]))

    def _union(self, branches: Sequence[Any], rows: Rows, path: str | None) -> None:
        chosen = self._varint(rows)
        self._mark(rows, (chosen < 0) | (chosen >= len(branches)))
        for number, branch in enumerate(branches):
            if branch != "null":
                taken = rows[chosen == number]
                if len(taken):
                    self.visit(branch, taken, path)

    def _list(self, schema: Any, rows: Rows) -> None:
        while len(rows):
            counts = self._varint(rows)
            self._mark(rows, (counts < 0) | (counts > _LONGEST_LIST))
            is_going_on = (counts > 0) & (counts <= _LONGEST_LIST)
            rows, counts = rows[is_going_on], counts[is_going_on]
            self._items(schema, rows, counts)
            rows = rows[~self.found.is_odd[rows]]

    def _items(self, schema: Any, rows: Rows, counts: Rows) -> None:
        for number in range(int(counts.max()) if len(counts) else 0):
            left = rows[counts > number]
            if number > _LONG and len(left) < _FEW:
                self.found.is_odd[left] = True
                return
            if schema["type"] == "map":
                self._bytes(left, None)
            self.visit(schema["items" if schema["type"] == "array" else "values"], left, None)

    def _bytes(self, rows: Rows, path: str | None) -> None:
        lengths = self._varint(rows)
        self._mark(rows, (lengths < 0) | (lengths > len(self._data)))
        begins = self.at[rows]
        self.at[rows] = ends = begins + np.clip(lengths, 0, len(self._data))
        if path in _WANTED:
            self.found.spans[path] = FoundSpans(rows, begins, ends)

    def _skip(self, rows: Rows, size: int, path: str | None) -> None:
        begins = self.at[rows]
        self.at[rows] = begins + size
        if path in _WANTED:
            self.found.spans[path] = FoundSpans(rows, begins, begins + size)

    def _number(self, name: str, schema: Any, rows: Rows, path: str | None) -> None:
        if name == "boolean":
            value = self._data.take(self.at[rows], mode="clip")
            self._mark(rows, value > 1)
            self.at[rows] += 1
        elif name in {"int", "long", "enum"}:
            values = self._varint(rows)
            if name == "enum":
                self._mark(rows, (values < 0) | (values >= len(schema["symbols"])))
            if path in _WANTED:
                self.found.numbers[path] = FoundValues(rows, values)
        else:
            self.found.is_odd[rows] = True

    def _varint(self, rows: Rows) -> Rows:
        at = self.at[rows]
        byte = self._data.take(at, mode="clip")
        at += 1
        value = (byte & 0x7F).astype(np.uint64)
        left, shift = np.flatnonzero(byte > 0x7F), 7
        while len(left):
            byte = self._data.take(at[left], mode="clip")
            if shift == 63:
                self._mark(rows[left], byte > 1)
            value[left] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            at[left] += 1
            left, shift = left[byte > 0x7F], shift + 7
            if shift > 63:
                self.found.is_odd[rows[left]] = True
                break
        self.at[rows] = at
        found: Rows = (value >> np.uint64(1)).view(np.int64) ^ -(value & np.uint64(1)).view(np.int64)
        return found

    def _mark(self, rows: Rows, is_odd: Any) -> None:
        if is_odd.any():
            self.found.is_odd[rows[is_odd]] = True


def _collect_named(schema: Any, named: dict[str, Any]) -> None:
    """Collect the named types: what comes later refers to them by name."""
    if isinstance(schema, list):
        for each in schema:
            _collect_named(each, named)
    elif isinstance(schema, dict):
        if schema["type"] in {"record", "fixed", "enum"}:
            named[schema["name"]] = schema
        for each in schema.get("fields", ()):
            _collect_named(each["type"], named)
        for inner in ("items", "values"):
            _collect_named(schema.get(inner), named)
        if not isinstance(schema["type"], str):
            _collect_named(schema["type"], named)
