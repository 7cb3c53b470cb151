"""Recognises events by the bytes that they share with an earlier event, so that only numbers are left to read.

Most events of one kind repeat job names, table names and structure. A template is the event's bytes without the values
of some named fields. Two events of one template differ in those values only, so whatever was computed for the template
holds for both. Templates are kept as a trie: each node maps the next run of constant bytes to the slot behind it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection
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
    """The values of the slots in their order, and a last None, which `Template.place` refers to for absent fields."""


@dataclass(frozen=True)
class Template:
    """Which slot holds which field."""

    places: dict[ValuePath, int]
    texts: frozenset[int]
    """The indexes of slots that hold text; all others hold numbers or bytes."""

    def place(self, *path: str | int) -> int:
        """Return the index into `Match.values`; for an absent field, the index of the last None."""
        return self.places.get(path, -1)


@dataclass
class TrieNode(Generic[T]):
    """A position behind a slot: the runs of constant bytes that can follow, by their sizes."""

    sizes: tuple[int, ...] = ()
    following: dict[bytes, tuple[int, TrieNode[T]]] = field(default_factory=dict)
    value: T | None = None

    def child(self, piece: bytes, slot: int) -> TrieNode[T]:
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
        self._schema = physical(json.loads(current_schema(KINDS[kind]).text))
        self._names = _named_types(self._schema)
        self._header = MAGIC + current_schema(KINDS[kind]).fingerprint
        self._varying = frozenset(varying)
        self._root: TrieNode[T] = TrieNode()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def clear(self) -> None:
        self._root, self._count = TrieNode(), 0

    def learn(self, data: bytes) -> tuple[Template, TrieNode[T]]:
        """Add the template of an event that was decoded without an error; set its value with `keep`."""
        cut = _Cut(data, self._schema, self._names, self._varying)
        node = self._root
        for piece, slot in cut.pieces:
            node = node.child(piece, slot)
        texts = (number for number, (_, slot) in enumerate(cut.pieces) if slot == _TEXT)
        return Template({path: number for number, path in enumerate(cut.paths)}, frozenset(texts)), node

    def keep(self, node: TrieNode[T], value: T) -> None:
        self._count += node.value is None
        node.value = value

    def match(self, data: bytes) -> Match[T] | None:  # noqa: C901, PLR0911, PLR0912 - calls would be most of its time
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
                    return None
                slot, node = found
                if slot == _END:
                    break
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
        if at != len(data) or node.value is None:
            return None
        values.append(None)
        return Match(node.value, values)


class _Cut:
    """Splits an event into runs of constant bytes and the paths of the slots between them."""

    def __init__(self, data: bytes, schema: Any, names: dict[str, Any], varying: frozenset[str]) -> None:
        self._source = io.BytesIO(data)
        self._data = data
        self._varying = varying
        self._names = names
        self._began = self._source.seek(HEADER_BYTES)
        self.pieces: list[tuple[bytes, int]] = []
        self.paths: list[ValuePath] = []
        self._walk(schema, ())
        if self._source.tell() != len(data):
            raise ValueError("there are bytes behind the event")
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
        else:
            self._value(name, schema, path)

    def _items(self, schema: Any, path: ValuePath) -> None:
        number = 0
        while count := self._long():
            if count < 0:
                self._long()  # the size of the block
            for _ in range(abs(count)):
                self._walk(schema, (*path, number))
                number += 1

    def _value(self, name: str, schema: Any, path: ValuePath) -> None:
        is_varying = bool(path) and path[-1] in self._varying
        if is_varying and name != "null":
            self._piece(schema["size"] if name == "fixed" else _SLOTS[name])
            self.paths.append(path)
        if name in {"int", "long", "enum"}:
            self._long()
        elif name in {"string", "bytes"}:
            self._source.seek(self._long(), io.SEEK_CUR)
        elif name != "null":
            self._source.seek(1 if name == "boolean" else schema["size"], io.SEEK_CUR)
        if is_varying and name != "null":
            self._began = self._source.tell()

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
    return mine | _named_types([*inner, schema.get("items")])
