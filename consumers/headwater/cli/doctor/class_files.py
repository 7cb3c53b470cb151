"""What the classes in jars have, read without a JVM (chapter 4 of the Java Virtual Machine Specification)."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final
from zipfile import BadZipFile, ZipFile

_TEXT: Final = 1
_CLASS: Final = 7
_WIDE: Final = frozenset({5, 6})
"""Constants that take two places."""
_SIZES: Final = {
    **dict.fromkeys((7, 8, 16, 19, 20), 2),
    15: 3,
    **dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4),
    **dict.fromkeys((5, 6), 8),
}
"""By a constant's tag how many bytes it has, of those that aren't text."""
_TYPE: Final = re.compile(r"(\[*)(?:L([^;]+);|([BCDFIJSZ]))")
_NAMES: Final = ("byte", "char", "double", "float", "int", "long", "short", "boolean")
_PRIMITIVES: Final = dict(zip("BCDFIJSZ", _NAMES, strict=True))
"""By letter the primitive type that it stands for."""


_ABSTRACT: Final = 0x0400


@dataclass(frozen=True)
class ClassHeader:
    """What a class is called and descends from."""

    name: str
    parents: tuple[str, ...]
    """Its superclass and its interfaces."""
    is_abstract: bool
    texts: Mapping[int, str]
    """By place, the texts of its constants."""
    end: int
    """Where its fields and methods begin."""


@dataclass(frozen=True)
class ClassFile:
    """Names of what a class itself declares; methods and constructors as `name(types)` and `new(types)`."""

    parents: tuple[str, ...]
    members: frozenset[str]


class Jars:
    """The classes of some jars."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple(paths)
        self._parsed: dict[str, ClassFile | None] = {}

    @cached_property
    def _archives(self) -> dict[str, ZipFile]:
        found: dict[str, ZipFile] = {}
        for path in self._paths:
            with suppress(BadZipFile, OSError):
                archive = ZipFile(path)
                found.update(dict.fromkeys(archive.namelist(), archive))
        return found

    def find(self, name: str) -> ClassFile | None:
        """A class by its full name."""
        if name not in self._parsed:
            entry = name.replace(".", "/") + ".class"
            archive = self._archives.get(entry)
            self._parsed[name] = None if archive is None else parse_class(archive.read(entry))
        return self._parsed[name]

    def has(self, name: str, member: str) -> bool:
        """Whether a class, or one that it extends, declares this member."""
        found = self.find(name)
        if found is None:
            return False
        return member in found.members or any(self.has(parent, member) for parent in found.parents)


def parse_class(data: bytes) -> ClassFile:
    header = parse_header(data)
    fields, at = _declared(data, header.end)
    methods, _ = _declared(data, at)
    members = {header.texts[name] for name, _ in fields}
    members.update(_signature(header.texts[name], header.texts[descriptor]) for name, descriptor in methods)
    return ClassFile(header.parents, frozenset(members))


def parse_header(data: bytes) -> ClassHeader:
    texts: dict[int, str] = {}
    classes: dict[int, int] = {}
    (count,), at, place = struct.unpack_from(">H", data, 8), 10, 1
    while place < count:
        tag = data[at]
        if tag == _TEXT:
            (length,) = struct.unpack_from(">H", data, at + 1)
            texts[place] = data[at + 3 : at + 3 + length].decode("utf-8", "replace")
            at += 3 + length
        else:
            if tag == _CLASS:
                (classes[place],) = struct.unpack_from(">H", data, at + 1)
            at += 1 + _SIZES[tag]
        place += 1 + (tag in _WIDE)
    flags, this, parent, interfaces = struct.unpack_from(">4H", data, at)
    others = (parent, *struct.unpack_from(f">{interfaces}H", data, at + 8))
    names = [texts[classes[each]].replace("/", ".") for each in (this, *others) if each]
    return ClassHeader(names[0], tuple(names[1:]), bool(flags & _ABSTRACT), texts, at + 8 + 2 * interfaces)


def _declared(data: bytes, at: int) -> tuple[list[tuple[int, int]], int]:
    """Places of the names and descriptors of fields or methods, and where they end."""
    (count,) = struct.unpack_from(">H", data, at)
    at += 2
    found: list[tuple[int, int]] = []
    for _ in range(count):
        _, name, descriptor, attributes = struct.unpack_from(">4H", data, at)
        at += 8
        found.append((name, descriptor))
        for _ in range(attributes):
            (length,) = struct.unpack_from(">I", data, at + 2)
            at += 6 + length
    return found, at


def _signature(name: str, descriptor: str) -> str:
    return f"{'new' if name == '<init>' else name}({','.join(_types(descriptor.partition(')')[0]))})"


def _types(parameters: str) -> Iterator[str]:
    for arrays, name, primitive in _TYPE.findall(parameters):
        yield (name.replace("/", ".") or _PRIMITIVES[primitive]) + "[]" * len(arrays)
