"""Events of one kind have most of their bytes in common: names, tables, the shape of what is between. What was found
out about those once holds for every event that has the same; what is left to be read are numbers.

Avro says itself where each value ends. So the bytes of an event fall into pieces that stand there again and again, and
values of named fields between them, and two events of the same pieces differ in those values only. Pieces are kept in a
tree: what can come next is looked up among what came next before.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from headwater.events.avro.codec import current_schema
from headwater.events.avro.framing import HEADER_BYTES, MAGIC
from headwater.events.avro.plain import physical
from headwater.events.kinds import KINDS

T = TypeVar("T")
Path: TypeAlias = "tuple[str | int, ...]"
Number: TypeAlias = "str | int | bytes | None"

_END: Final = 0
_LONG: Final = 1
_TEXT: Final = 2
"""What comes behind a piece; a greater number is so many bytes as they are."""
_HOLES: Final = {"long": _LONG, "string": _TEXT}
_LONGEST: Final = 63
"""Bits before the last byte of a number of 64."""


class Fit(NamedTuple, Generic[T]):
    """An event of a known mould."""

    what: T
    values: list[Number]
    """Of the named fields that are there, in their order, and None behind them: `Learned.place` counts on it."""


@dataclass(frozen=True)
class Learned:
    """Where the values of an event's mould stand."""

    places: dict[Path, int]
    texts: frozenset[int]
    """The places of texts; in all others are numbers, or bytes."""

    def place(self, *path: str | int) -> int:
        """Of a field that isn't there, the place of None."""
        return self.places.get(path, -1)


@dataclass
class Knot(Generic[T]):
    """A place between a value and what comes behind it."""

    sizes: tuple[int, ...] = ()
    following: dict[bytes, tuple[int, Knot[T]]] = field(default_factory=dict)
    what: T | None = None

    def grown(self, piece: bytes, hole: int) -> Knot[T]:
        found = self.following.get(piece)
        if found is None:
            found = self.following[piece] = (hole, Knot())
            if len(piece) not in self.sizes:
                self.sizes = (*self.sizes, len(piece))
        return found[1]


class Moulds(Generic[T]):
    """Of one kind, for one thread. `varying` are the names of fields, at whatever depth, whose values aren't learned:
    numbers, texts, and bytes of a fixed length."""

    def __init__(self, kind: str, varying: Collection[str]) -> None:
        self._schema = physical(json.loads(current_schema(KINDS[kind]).text))
        self._names = _named(self._schema)
        self._header = MAGIC + current_schema(KINDS[kind]).fingerprint
        self._varying = frozenset(varying)
        self._root: Knot[T] = Knot()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def clear(self) -> None:
        self._root, self._count = Knot(), 0

    def learn(self, data: bytes) -> tuple[Learned, Knot[T]]:
        """Of an event that was decoded without a fault. What holds for all of its mould is given to `keep`."""
        cut = _Cut(data, self._schema, self._names, self._varying)
        knot = self._root
        for piece, hole in cut.pieces:
            knot = knot.grown(piece, hole)
        texts = (number for number, (_, hole) in enumerate(cut.pieces) if hole == _TEXT)
        return Learned({path: number for number, path in enumerate(cut.paths)}, frozenset(texts)), knot

    def keep(self, knot: Knot[T], what: T) -> None:
        self._count += knot.what is None
        knot.what = what

    def fit(self, data: bytes) -> Fit[T] | None:  # noqa: C901, PLR0911, PLR0912 - calls would be most of its time
        """None where something in it is new, or isn't sound."""
        if not data.startswith(self._header):
            return None
        knot, at = self._root, HEADER_BYTES
        values: list[Number] = []
        try:
            while True:
                following = knot.following
                for size in knot.sizes:
                    found = following.get(data[at : at + size])
                    if found is not None:
                        at += size
                        break
                else:
                    return None
                hole, knot = found
                if hole == _END:
                    break
                if hole > _TEXT:
                    values.append(data[at : at + hole])
                    at += hole
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
                if hole == _LONG:
                    values.append(number)
                elif number < 0:
                    return None
                else:
                    values.append(data[at : at + number].decode())
                    at += number
        except (IndexError, UnicodeDecodeError):
            return None
        if at != len(data) or knot.what is None:
            return None
        values.append(None)
        return Fit(knot.what, values)


class _Cut:
    """The pieces of an event, and the paths of the values between them."""

    def __init__(self, data: bytes, schema: Any, names: dict[str, Any], varying: frozenset[str]) -> None:
        self._source = io.BytesIO(data)
        self._data = data
        self._varying = varying
        self._names = names
        self._began = self._source.seek(HEADER_BYTES)
        self.pieces: list[tuple[bytes, int]] = []
        self.paths: list[Path] = []
        self._walk(schema, ())
        if self._source.tell() != len(data):
            raise ValueError("something stands behind the event")
        self._piece(_END)

    def _walk(self, schema: Any, path: Path) -> None:
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

    def _items(self, schema: Any, path: Path) -> None:
        number = 0
        while count := self._long():
            if count < 0:
                self._long()  # the size of the block
            for _ in range(abs(count)):
                self._walk(schema, (*path, number))
                number += 1

    def _value(self, name: str, schema: Any, path: Path) -> None:
        is_varying = bool(path) and path[-1] in self._varying
        if is_varying and name != "null":
            self._piece(schema["size"] if name == "fixed" else _HOLES[name])
            self.paths.append(path)
        if name in {"int", "long", "enum"}:
            self._long()
        elif name in {"string", "bytes"}:
            self._source.seek(self._long(), io.SEEK_CUR)
        elif name != "null":
            self._source.seek(1 if name == "boolean" else schema["size"], io.SEEK_CUR)
        if is_varying and name != "null":
            self._began = self._source.tell()

    def _piece(self, hole: int) -> None:
        self.pieces.append((self._data[self._began : self._source.tell()], hole))

    def _long(self) -> int:
        number = shift = 0
        while True:
            byte = self._source.read(1)[0]
            number |= (byte & 0x7F) << shift
            if byte <= 0x7F:
                return (number >> 1) ^ -(number & 1)
            shift += 7


def _named(schema: Any) -> dict[str, Any]:
    """The types that are called by their names later; the place that says what they are may be empty in an event."""
    if isinstance(schema, list):
        return {name: each for one in schema for name, each in _named(one).items()}
    if not isinstance(schema, dict):
        return {}
    inner = [each["type"] for each in schema.get("fields", ())]
    mine = {schema["name"]: schema} if schema["type"] in {"record", "fixed", "enum"} else {}
    return mine | _named([*inner, schema.get("items")])
