"""What the classes in jars have, read without a JVM (chapter 4 of the Java Virtual Machine Specification).

Where a driver has our Java classes from: class files of the wheel, those that an earlier driver compiled, or the
compiler, with which its start takes seconds more.
"""

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

from headwater.jvm.bundled import JarIdentities, find_bundled
from headwater.jvm.cache import ArchiveCache, path_of
from headwater.jvm.last_start import read_last_start
from headwater.jvm.loader import ClassOrigin
from headwater.listeners.capture.formats import java_parts
from headwater.listeners.capture.jvm import source_groups
from headwater.local import MissingRequirementError, java
from headwater.spi import CheckResult

_SUBJECT: Final = "class files"
_WAYS: Final = {
    ClassOrigin.WHEEL: "had the wheel's class files",
    ClassOrigin.CACHE: "had class files that an earlier one compiled",
    ClassOrigin.COMPILER: "compiled its classes",
}


def check_compiled_classes(conf: Mapping[str, str], jars: Path) -> Iterator[CheckResult]:
    """Yield what a driver with Spark's jars of this directory would use, and what the last one here did use."""
    yield _check_expected(conf, jars)
    last = read_last_start()
    if last is not None:
        what = f"{last.application} (Spark {last.spark}, Java {last.java}, {last.time})"
        yield CheckResult.ok(_SUBJECT, f"the last driver here, {what}, {_WAYS[last.origin]}")


def _check_expected(conf: Mapping[str, str], jars: Path) -> CheckResult:
    if _are_in_wheel(_ClassPath(conf, jars)):
        return CheckResult.ok(_SUBJECT, "a driver opens those of this wheel, and compiles nothing")
    cache = ArchiveCache()
    try:
        count = cache.count()
    except OSError as e:
        words = f"this wheel has none for these jars, and each driver compiles at its start, as none can be kept: {e}"
        return CheckResult.warning(_SUBJECT, words, "set HEADWATER_CACHE to a directory of your own that stays")
    words = (
        "this wheel has none for these jars: a driver opens those that one before it kept, or compiles and keeps them"
    )
    return CheckResult.ok(_SUBJECT, f"{words} ({count} archives in {cache.root})")


class _ClassPath:
    """Spark's jars, and the configuration's that are on this machine; packages are where Ivy has put them."""

    def __init__(self, conf: Mapping[str, str], jars: Path) -> None:
        packages = [package.strip() for package in conf.get("spark.jars.packages", "").split(",") if package.strip()]
        ivy = Path(conf.get("spark.jars.ivy") or Path.home() / ".ivy2") / "jars"
        resolved = [ivy / f"{'_'.join(package.split(':')[:2])}-{package.split(':')[-1]}.jar" for package in packages]
        named = [*conf.get("spark.jars", "").split(","), *conf.get("spark.driver.extraClassPath", "").split(":")]
        self._named = [*jars.glob("*.jar"), *(path_of(each.strip()) for each in named if each.strip()), *resolved]
        self._needed = list(ivy.glob("*.jar")) if packages else []
        """What packages need is among them, by names that only Ivy knows."""

    @property
    def identities(self) -> JarIdentities:
        return JarIdentities([*self._named, *self._needed])

    def places(self, classes: Iterable[str]) -> dict[str, Path]:
        """Return the jars that these classes are in, of those that are in one."""
        entries = {f"{each.replace('.', '/')}.class": each for each in classes}
        found: dict[str, Path] = {}
        for path in self._named:
            with suppress(OSError, BadZipFile), ZipFile(path) as archive:
                for entry in entries.keys() & archive.NameToInfo.keys():
                    found.setdefault(entries[entry], path)
        return found


def _are_in_wheel(class_path: _ClassPath) -> bool:
    """Whether this wheel has class files for all that a driver has of ours; no where no Java says its version."""
    parts = java_parts()
    places = class_path.places(part.probe for part in parts)
    groups = source_groups([part for part in parts if part.probe in places])
    try:
        release = java().version
    except MissingRequirementError:
        return False
    identities, shared = class_path.identities, groups[0].sources
    return all(
        group.probe in places and find_bundled(group.digest(shared), release, places[group.probe], identities)
        for group in groups
    )


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
    fields, at = _member_places(data, header.end)
    methods, _ = _member_places(data, at)
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


def _member_places(data: bytes, at: int) -> tuple[list[tuple[int, int]], int]:
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
