"""Recognises events by the bytes that they share with an earlier event, so that only numbers are left to read.

Most events of one kind repeat job names, table names and structure. A template is the event's bytes without the values
of some named fields. Two events of one template differ in those values only, so whatever was computed for the template
holds for both. Templates are kept as a trie: each node maps the next run of constant bytes to the slot behind it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeAlias, TypeVar

from headwater.events.avro.codec import current_schema
from headwater.events.avro.framing import HEADER_BYTES, MAGIC
from headwater.events.avro.raw_reader import physical
from headwater.events.kinds import KINDS

T = TypeVar("T")
ValuePath: TypeAlias = "tuple[str | int, ...]"
FieldValue: TypeAlias = "str | int | bytes | None"

_END: Final = 0
_LONG: Final = 1
_TEXT: Final = 2
"""Kinds of slots behind a run of constant bytes. A greater number is a slot of that many bytes."""
_SLOTS: Final = {"long": _LONG, "string": _TEXT}
_LONGEST: Final = 63
"""Bits before the last byte of a varint of 64 bits."""


@dataclass(slots=True)
class Match(Generic[T]):
    """An event whose template is known, with the values of its slots."""

    value: T
    values: list[FieldValue]
    """The values of the slots in their order, and a last None."""


@dataclass(frozen=True)
class Template:
    """The slots of an event that a template was learned from."""

    places: dict[ValuePath, int]
    """Which slot holds which field. What is absent has no slot."""
    values: tuple[FieldValue, ...]
    """The values of the slots in that event."""


@dataclass
class TrieNode(Generic[T]):
    """A position behind a slot: the runs of constant bytes that can follow, by their sizes."""

    sizes: tuple[int, ...] = ()
    following: dict[bytes, tuple[int, TrieNode[T]]] = field(default_factory=dict)
    ends: dict[bytes, TrieNode[T]] = field(default_factory=dict)
    """What can follow up to the end of an event. Its size is known, so many long ones cost one look-up."""
    value: T | None = None

    def child(self, piece: bytes, slot: int) -> TrieNode[T]:
        if slot == _END:
            return self.ends.setdefault(piece, TrieNode())
        found = self.following.get(piece)
        if found is None:
            found = self.following[piece] = (slot, TrieNode())
            if len(piece) not in self.sizes:
                self.sizes = (*self.sizes, len(piece))
        return found[1]


class TemplateCache(Generic[T]):
    """Templates of one event kind, with a value for each. Not thread-safe.

    `varying` names the fields, at any depth, that become slots: numbers, texts, and bytes of a fixed length.
    """

    def __init__(self, kind: str, varying: Collection[str]) -> None:
        schema = physical(json.loads(current_schema(KINDS[kind]).text))
        self._names = _named_types(schema)
        self._header = MAGIC + current_schema(KINDS[kind]).fingerprint
        self._varying = frozenset(varying)
        may_vary = [at for at, each in enumerate(schema["fields"]) if _may_vary(each, self._varying, self._names)]
        self._fields = schema["fields"][: may_vary[-1] + 1]  # behind them no slot can come
        self._root: TrieNode[T] = TrieNode()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def clear(self) -> None:
        self._root, self._count = TrieNode(), 0

    def learn(self, data: bytes) -> tuple[Template, TrieNode[T]]:
        """Add the template of an event that was decoded without an error; set its value with `keep`."""
        cut = _Cut(data, self._fields, self._names, self._varying)
        node = self._root
        for piece, slot in cut.pieces:
            node = node.child(piece, slot)
        return Template({path: number for number, path in enumerate(cut.paths)}, tuple(cut.values)), node

    def keep(self, node: TrieNode[T], value: T) -> None:
        self._count += node.value is None
        node.value = value

    def match(self, data: bytes) -> Match[T] | None:  # noqa: C901, PLR0912 - calls would be most of its time
        """Return the template and the values of the event's slots; None if no template fits or bytes are malformed."""
        if not data.startswith(self._header):
            return None
        node, at = self._root, HEADER_BYTES
        values: list[FieldValue] = []
        try:
            while True:
                following = node.following
                for size in node.sizes:
                    found = following.get(data[at : at + size])
                    if found is not None:
                        at += size
                        break
                else:
                    found_end = node.ends.get(data[at:])
                    if found_end is None or found_end.value is None:
                        return None
                    values.append(None)
                    return Match(found_end.value, values)
                slot, node = found
                if slot > _TEXT:
                    values.append(data[at : at + slot])
                    at += slot
                    continue
                byte = data[at]
                at += 1
                number, shift = byte & 0x7F, 7
                while byte > 0x7F:
                    byte = data[at]
                    at += 1
                    number |= (byte & 0x7F) << shift
                    shift += 7
                if shift > _LONGEST and (shift > _LONGEST + 7 or byte > 1):
                    return None
                number = (number >> 1) ^ -(number & 1)
                if slot == _LONG:
                    values.append(number)
                elif number < 0:
                    return None
                else:
                    values.append(data[at : at + number].decode())
                    at += number
        except (IndexError, UnicodeDecodeError):
            return None


class _Cut:
    """Splits an event into runs of constant bytes and the paths of the slots between them."""

    def __init__(self, data: bytes, fields: Sequence[Any], names: dict[str, Any], varying: frozenset[str]) -> None:
        self._source = io.BytesIO(data)
        self._data = data
        self._varying = varying
        self._names = names
        self._began = self._source.seek(HEADER_BYTES)
        self.pieces: list[tuple[bytes, int]] = []
        self.paths: list[ValuePath] = []
        self.values: list[FieldValue] = []
        for each in fields:
            self._walk(each["type"], (each["name"],))
        self._source.seek(0, io.SEEK_END)
        self._piece(_END)

    def _walk(self, schema: Any, path: ValuePath) -> None:
        if isinstance(schema, list):
            self._walk(schema[self._long()], path)
            return
        name = schema["type"] if isinstance(schema, dict) else schema
        if name in self._names:
            self._walk(self._names[name], path)
        elif name == "record":
            for each in schema["fields"]:
                self._walk(each["type"], (*path, each["name"]))
        elif name == "array":
            self._items(schema["items"], path)
        elif name == "map":
            self._items(schema["values"], path, has_keys=True)
        else:
            self._value(name, schema, path)

    def _items(self, schema: Any, path: ValuePath, *, has_keys: bool = False) -> None:
        """Walk the items of an array or a map. Those of a map are numbered too, in the order of the bytes."""
        number = 0
        while count := self._long():
            if count < 0:
                self._long()  # the size of the block
            for _ in range(abs(count)):
                if has_keys:
                    self._source.seek(self._long(), io.SEEK_CUR)
                self._walk(schema, (*path, number))
                number += 1

    def _value(self, name: str, schema: Any, path: ValuePath) -> None:
        is_varying = bool(path) and path[-1] in self._varying
        if is_varying and name != "null":
            self._piece(schema["size"] if name == "fixed" else _SLOTS[name])
            self.paths.append(path)
        value = self._read(name, schema)
        if is_varying and name != "null":
            self.values.append(value)
            self._began = self._source.tell()

    def _read(self, name: str, schema: Any) -> FieldValue:
        if name in {"int", "long", "enum"}:
            return self._long()
        if name in {"string", "bytes"}:
            data = self._source.read(self._long())
            return data.decode() if name == "string" else data
        return None if name == "null" else self._source.read(1 if name == "boolean" else schema["size"])

    def _piece(self, slot: int) -> None:
        self.pieces.append((self._data[self._began : self._source.tell()], slot))

    def _long(self) -> int:
        number = shift = 0
        while True:
            byte = self._source.read(1)[0]
            number |= (byte & 0x7F) << shift
            if byte <= 0x7F:
                return (number >> 1) ^ -(number & 1)
            shift += 7


def _named_types(schema: Any) -> dict[str, Any]:
    """Collect the named types: later references use the name, and the declaring field may be empty in an event."""
    if isinstance(schema, list):
        return {name: each for one in schema for name, each in _named_types(one).items()}
    if not isinstance(schema, dict):
        return {}
    inner = [each["type"] for each in schema.get("fields", ())]
    mine = {schema["name"]: schema} if schema["type"] in {"record", "fixed", "enum"} else {}
    return mine | _named_types([*inner, schema.get("items"), schema.get("values")])


def _may_vary(field: Any, varying: frozenset[str], names: dict[str, Any]) -> bool:
    """Return whether a field is a slot or contains one."""
    inner = (each for record in _records(field["type"], names) for each in record["fields"])
    return field["name"] in varying or any(_may_vary(each, varying, names) for each in inner)


def _records(schema: Any, names: dict[str, Any]) -> Iterator[Any]:
    """Yield the records that a field can contain directly."""
    if isinstance(schema, list):
        for each in schema:
            yield from _records(each, names)
    elif isinstance(schema, str):
        yield from _records(names[schema], names) if schema in names else ()
    elif schema["type"] == "record":
        yield schema
    elif schema["type"] in {"array", "map"}:
        yield from _records(schema.get("items", schema.get("values")), names)
    elif schema["type"] in names or isinstance(schema["type"], (list, dict)):
        yield from _records(schema["type"], names)
