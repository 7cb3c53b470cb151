"""What the classes in jars are and what they descend from, read off the class files: no JVM is started."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zipfile import ZipFile

_WIDTHS: Final = {
    7: 2,
    8: 2,
    16: 2,
    19: 2,
    20: 2,
    15: 3,
    3: 4,
    4: 4,
    9: 4,
    10: 4,
    11: 4,
    12: 4,
    17: 4,
    18: 4,
    5: 8,
    6: 8,
}
"""Bytes of the entries of a constant pool, by their tag; a text (1) tells its own length."""
_UTF8, _CLASS, _TWO_PLACES, _ABSTRACT = 1, 7, (5, 6), 0x0400


@dataclass(frozen=True)
class JavaClass:
    name: str
    parents: tuple[str, ...]
    """Its superclass and its interfaces."""
    is_abstract: bool


def classes_in(jars: Iterable[Path]) -> dict[str, JavaClass]:
    """All classes by their names, with dots."""
    return {each.name: each for jar in jars for each in _of_jar(jar)}


def descendants(classes: dict[str, JavaClass], ancestor: str) -> set[str]:
    """The classes that can be instantiated and descend from this one."""
    below = {ancestor}
    grown = True
    while grown:
        more = {name for name, each in classes.items() if name not in below and below.intersection(each.parents)}
        grown = bool(more)
        below |= more
    return {name for name in below if name in classes and not classes[name].is_abstract}


def _of_jar(jar: Path) -> Iterator[JavaClass]:
    with ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.endswith(".class") and not name.endswith("module-info.class"):
                yield _parsed(archive.read(name))


def _parsed(content: bytes) -> JavaClass:
    texts, classes, at = _pool(content)
    flags, this, parent, count = struct.unpack_from(">HHHH", content, at)
    interfaces = struct.unpack_from(f">{count}H", content, at + 8)
    names = [texts[classes[place]].replace("/", ".") for place in (this, parent, *interfaces) if place]
    return JavaClass(names[0], tuple(names[1:]), bool(flags & _ABSTRACT))


def _pool(content: bytes) -> tuple[dict[int, str], dict[int, int], int]:
    """Texts and classes of the constant pool, and where it ends."""
    (count,) = struct.unpack_from(">H", content, 8)
    texts: dict[int, str] = {}
    classes: dict[int, int] = {}
    at, place = 10, 1
    while place < count:
        tag = content[at]
        if tag == _UTF8:
            (length,) = struct.unpack_from(">H", content, at + 1)
            texts[place] = content[at + 3 : at + 3 + length].decode("utf-8", "replace")
            at += 3 + length
        else:
            if tag == _CLASS:
                (classes[place],) = struct.unpack_from(">H", content, at + 1)
            at += 1 + _WIDTHS[tag]
        place += 2 if tag in _TWO_PLACES else 1
    return texts, classes, at
