"""Whether all that the Java side reaches by reflection is there, in this driver's Spark and formats.

It is declared in a `reflection.txt` beside the sources. The compiler checks all else. But a field that has another name
in a new version of Spark is noticed when a statement needs it and not before, and whatever reads it must not take it
for one without a value.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from headwater.jvm.loader import ClassOrigin
from headwater.listeners.capture.formats import java_parts
from headwater.listeners.capture.formats.plugin import JavaPart
from headwater.listeners.capture.jvm import DegradedPart, JavaClasses
from headwater.listeners.spark_versions import untested


@dataclass(frozen=True)
class ReflectedMember:
    """A field, a method `name(types)` or a constructor `new(types)`: one of these names in one of these classes."""

    source: str
    """The Java class that reads it."""
    owners: tuple[str, ...]
    names: tuple[str, ...]
    is_optional: bool
    """Not in every version: looked for where its class is."""
    is_checked: bool = True
    """Of a class that is in every version, but not in all of them with this member."""

    def __str__(self) -> str:
        owner, *others = (f"{owner}.{name}" for owner in self.owners for name in self.names)
        return f"{owner} (or {', '.join(others)})" if others else owner


@dataclass(frozen=True)
class UndeclaredMember:
    """What a source reaches under a name that is known at run time only, and why that is so."""

    source: str
    expression: str
    why: str


@dataclass(frozen=True)
class ReflectionTable:
    members: tuple[ReflectedMember, ...]
    undeclared: tuple[UndeclaredMember, ...]


def read_reflection(parts: Iterable[JavaPart] | None = None) -> ReflectionTable:
    """What the sources of these parts declare; else of all: those that all formats share, and those of each format."""
    tables = [parse_reflection(part.reflection()) for part in (java_parts() if parts is None else parts)]
    return ReflectionTable(
        tuple(member for table in tables for member in table.members),
        tuple(member for table in tables for member in table.undeclared),
    )


def lazy_name(name: str) -> str:
    """What Spark 4 calls the field behind which it keeps a lazy value of this name."""
    return f"lazy{name[0].upper()}{name[1:]}"


def parse_reflection(text: str) -> ReflectionTable:
    """Read a table; `java/reflection.txt` begins with how it is written."""
    members: list[ReflectedMember] = []
    undeclared: list[UndeclaredMember] = []
    source = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            source = line.strip("[]")
        elif line.startswith("~"):
            expression, _, why = line.removeprefix("~").partition(":")
            undeclared.append(UndeclaredMember(source, expression.strip(), why.strip()))
        elif line and not line.startswith("#"):
            members += _members(source, line)
    return ReflectionTable(tuple(members), tuple(undeclared))


def _members(source: str, line: str) -> Iterator[ReflectedMember]:
    owners, _, names = line.partition(": ")
    for name in names.split():
        yield ReflectedMember(
            source,
            tuple(owners.removeprefix("?").split("|")),
            tuple(name.removeprefix("?").split("|")),
            is_optional=owners.startswith("?"),
            is_checked=not name.startswith("?"),
        )


_LOG = logging.getLogger(__name__)
_SECONDS: Final = 60
_ABSENT: Final = "?"


class SelfTest:
    """Begins at once, on a thread of the JVM: it loads classes, for which the job needn't wait.

    Until it is over, what reads a member that may be absent waits for it. Then it is an error to read one of those that
    should be there and aren't, so the statement that needs it has a Gap and no wrong answer. What an archive of class
    files knows of the same jars isn't looked for again.
    """

    def __init__(self, java: JavaClasses, absent: Collection[str]) -> None:
        """Without those sources whose names begin as what is absent."""
        declared = read_reflection().members
        self._members = [
            member for member in declared if member.is_checked and not member.source.startswith(tuple(absent))
        ]
        by_line = {_with_source(member): member for member in self._members}
        self._known, self._asked = [], self._members
        if java.state.origin is not ClassOrigin.COMPILER:
            known = (line.rpartition("\t") for line in java.state.facts.missing)
            self._known = [(by_line[line], jar) for line, _, jar in known if line in by_line]
            self._asked = [by_line[line] for line in java.state.facts.absent if line in by_line]
        names = {f"{owner}.{name}" for member, _ in self._known for owner in member.owners for name in member.names}
        self.missing: tuple[str, ...] | None = None
        """A line for each that isn't there, when that is known."""
        self.absent: tuple[str, ...] = ()
        """A line for each of those that need not be there, as their classes aren't."""
        self._test = java.new("SelfTest", "\n".join(map(_line_of, self._asked)), "\n".join(sorted(names)))
        self._test.start()

    def finish(self, spark: str) -> list[DegradedPart]:
        """What reads something that isn't there, on this version of Spark."""
        said = self._test.missing(_SECONDS)
        if said is None:
            return [DegradedPart("SelfTest", "it didn't come to an end")]
        lines = [line.partition("\t") for line in said.splitlines()]
        found = [(self._asked[int(place)], jar) for place, _, jar in lines]
        missing = [*self._known, *((member, jar) for member, jar in found if jar != _ABSENT)]
        self.missing = tuple(f"{_with_source(member)}\t{jar}" for member, jar in missing)
        self.absent = tuple(_with_source(member) for member, jar in found if jar == _ABSENT)
        level = logging.INFO if untested(spark) is None else logging.WARNING
        there = len(self._members) - len(missing)
        words = f"{there} of {len(self._members)} members that are read by reflection are there"
        _LOG.log(level, "Spark %s: %s", spark, words)
        return list(_degraded(missing, spark))


def _line_of(member: ReflectedMember) -> str:
    return "\t".join(("|".join(member.owners), "|".join(member.names), "?" if member.is_optional else "-"))


def _with_source(member: ReflectedMember) -> str:
    return f"{member.source}\t{_line_of(member)}"


def _degraded(missing: list[tuple[ReflectedMember, str]], spark: str) -> Iterator[DegradedPart]:
    for source, group in groupby(missing, lambda known: known[0].source):
        found = list(group)
        names = "; ".join(dict.fromkeys(str(member) for member, _ in found))
        jars = ", ".join(sorted({jar for _, jar in found if jar})) or "any jar"
        why = (
            f"{names} can't be found in {jars} (Spark {spark}): each statement that needs it has a Gap; please report "
            "it with these versions"
        )
        yield DegradedPart(source, why, is_there=True)
