"""Reads many events of one schema at once: each field of all events in one step, by numpy.

Avro says where each value ends, so all events are walked side by side: `at` is where each of them is. What isn't the
plain case in any way (a number that is too long, a list that goes on for ever, bytes that end elsewhere) is left to the
reader of single events, which also says what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np

from headwater.events.avro.raw_reader import physical
from headwater.events.avro.schema_cache import WriterSchema

FieldFilter: TypeAlias = "Callable[[str], bool]"
"""Says whether the values at a path are wanted, such as `inputs.0.rows`."""
Found = TypeVar("Found", bound="FoundValues | FoundSpans")
Rows: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
DATASET: Final = "DatasetId"
_LONGEST_LIST: Final = 512
_FEW: Final = 8
"""Where so few events go on with a list for long, they are quicker one by one."""
_LONG: Final = 24
_PADDING: Final = bytes(16)
_ONE_BYTE: Final = 64
_LAST_SHIFT: Final = 63
"""Of the tenth byte of a number, which has one bit more."""


class FoundValues(NamedTuple):
    """The values of a number in some of the events."""

    rows: Rows
    values: Rows
    starts: Rows
    ends: Rows


class FoundSpans(NamedTuple):
    """Where a text, or other bytes, stand in some of the events."""

    rows: Rows
    starts: Rows
    """Where the length of a text stands."""
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

    def __init__(self, schema: WriterSchema, is_wanted: FieldFilter, fields: int | None = None) -> None:
        """With `fields` only so many fields are read, and whatever stands behind them belongs to the event."""
        self._schema = physical(json.loads(schema.text))
        self._named: dict[str, Any] = {}
        _collect_named(self._schema, self._named)
        self._is_wanted = is_wanted
        self._is_whole = fields is None
        self._schema = {**self._schema, "fields": self._schema["fields"][:fields]}

    def read(self, events: Sequence[bytes], offset: int) -> ReadColumns:
        """Read events whose Avro bytes begin at an offset."""
        lengths = np.fromiter(map(len, events), np.int64, len(events))
        ends = np.cumsum(lengths)
        data = np.frombuffer(b"".join([*events, _PADDING]), np.uint8)
        walk = _Walk(data, len(events), self._named, self._is_wanted)
        at = walk.visit(self._schema, np.arange(len(events)), ends - lengths + offset, "")
        walk.found.is_odd |= at != ends if self._is_whole else at > ends
        return walk.found


class _Walk:
    """Methods are given events and where each of them is, and return where each is behind the value."""

    def __init__(self, data: Any, count: int, named: dict[str, Any], is_wanted: FieldFilter) -> None:
        self.found: Final = ReadColumns(data, np.zeros(count, np.bool_))
        self._data = data
        self._named = named
        self._is_wanted = is_wanted

    def visit(self, schema: Any, rows: Rows, at: Rows, path: str) -> Rows:
        """Walk over a value in these events."""
        if isinstance(schema, list):
            return self._union(schema, rows, at, path)
        name = schema["type"] if isinstance(schema, dict) else schema
        if name in self._named:
            return self.visit(self._named[name], rows, at, path)
        if name == "record":
            return self._record(schema, rows, at, path)
        if name in {"array", "map"}:
            return self._list(schema, rows, at, path)
        return self._value(name, schema, rows, at, path)

    def _record(self, schema: Any, rows: Rows, at: Rows, path: str) -> Rows:
        begins = at
        for each in schema["fields"]:
            at = self.visit(each["type"], rows, at, f"{path}.{each['name']}" if path else each["name"])
        if schema["name"] == DATASET:
            self.found.datasets.append(FoundSpans(rows, begins, begins, at.copy()))
        return at

    def _union(self, branches: Sequence[Any], rows: Rows, at: Rows, path: str) -> Rows:
        chosen, at = self._choice(rows, at, len(branches))
        for number, branch in enumerate(branches):
            if branch != "null":
                taken = np.flatnonzero(chosen == number)
                if len(taken) == len(rows):
                    return self.visit(branch, rows, at, path)
                if len(taken):
                    at[taken] = self.visit(branch, rows[taken], at[taken], path)
        return at

    def _list(self, schema: Any, rows: Rows, at: Rows, path: str) -> Rows:
        """Walk over a list of one block, as writers write lists, and its end."""
        counts, at = self._varint(rows, at)
        self._mark(rows, (counts < 0) | (counts > _LONGEST_LIST))
        left = np.flatnonzero((counts > 0) & ~self.found.is_odd[rows])
        if len(left):
            at[left] = self._items(schema, rows[left], at[left], counts[left], path)
            left = left[~self.found.is_odd[rows[left]]]
            more, at[left] = self._varint(rows[left], at[left])
            self._mark(rows[left], more != 0)
        return at

    def _items(self, schema: Any, rows: Rows, at: Rows, counts: Rows, path: str) -> Rows:
        fewest = int(counts.min())
        for number in range(int(counts.max())):
            inner = f"{path}.{number}"
            if number < fewest:
                at = self._item(schema, rows, at, inner)
                continue
            left = np.flatnonzero(counts > number)
            if number > _LONG and len(left) < _FEW:
                self.found.is_odd[rows[left]] = True
                break
            at[left] = self._item(schema, rows[left], at[left], inner)
        return at

    def _item(self, schema: Any, rows: Rows, at: Rows, path: str) -> Rows:
        if schema["type"] == "map":
            at = self._bytes(rows, at, "")
        return self.visit(schema["items" if schema["type"] == "array" else "values"], rows, at, path)

    def _bytes(self, rows: Rows, at: Rows, path: str) -> Rows:
        starts = at
        lengths, at = self._varint(rows, at)
        self._mark(rows, (lengths < 0) | (lengths > len(self._data)))
        return self._span(rows, starts, at, at + np.clip(lengths, 0, len(self._data)), path)

    def _span(self, rows: Rows, starts: Rows, begins: Rows, ends: Rows, path: str) -> Rows:
        if self._is_wanted(path):
            _add(self.found.spans, path, FoundSpans(rows, starts.copy(), begins.copy(), ends.copy()))
        return ends

    def _value(self, name: str, schema: Any, rows: Rows, at: Rows, path: str) -> Rows:
        if name in {"string", "bytes"}:
            return self._bytes(rows, at, path)
        if name == "fixed":
            return self._span(rows, at, at, at + schema["size"], path)
        return at if name == "null" else self._number(name, schema, rows, at, path)

    def _number(self, name: str, schema: Any, rows: Rows, at: Rows, path: str) -> Rows:
        if name == "boolean":
            self._mark(rows, self._data.take(at, mode="clip") > 1)
            return at + 1
        if name == "enum":
            return self._choice(rows, at, len(schema["symbols"]))[1]
        if name not in {"int", "long"}:
            self.found.is_odd[rows] = True
            return at
        starts = at
        values, at = self._varint(rows, at)
        if self._is_wanted(path):
            _add(self.found.numbers, path, FoundValues(rows, values, starts.copy(), at.copy()))
        return at

    def _choice(self, rows: Rows, at: Rows, count: int) -> tuple[Any, Rows]:
        """Return a number below a count, which one byte holds where that is at most 64, and where the next value is."""
        if count > _ONE_BYTE:
            values, at = self._varint(rows, at)
            self._mark(rows, (values < 0) | (values >= count))
            return values, at
        byte = self._data.take(at, mode="clip")
        self._mark(rows, (byte >= 2 * count) | (byte & 1 == 1))
        return byte >> 1, at + 1

    def _varint(self, rows: Rows, at: Rows) -> tuple[Rows, Rows]:
        byte = self._data.take(at, mode="clip")
        at = at + 1
        left = np.flatnonzero(byte > 0x7F)
        if not len(left):
            small = byte.astype(np.int64)
            return (small >> 1) ^ -(small & 1), at
        value, shift = (byte & 0x7F).astype(np.uint64), 7
        while len(left):
            byte = self._data.take(at[left], mode="clip")
            if shift == _LAST_SHIFT:
                self._mark(rows[left], byte > 1)
            value[left] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            at[left] += 1
            left, shift = left[byte > 0x7F], shift + 7
            if shift > _LAST_SHIFT:
                self.found.is_odd[rows[left]] = True
                break
        return (value >> np.uint64(1)).view(np.int64) ^ -(value & np.uint64(1)).view(np.int64), at

    def _mark(self, rows: Rows, is_odd: Any) -> None:
        if is_odd.any():
            self.found.is_odd[rows[is_odd]] = True


def _add(found: dict[str, Found], path: str, more: Found) -> None:
    """Add values of a path, which may stand in several branches of a union."""
    known = found.get(path)
    found[path] = more if known is None else type(more)(*map(np.concatenate, zip(known, more, strict=True)))


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
