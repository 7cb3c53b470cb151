"""What the Java side reaches by reflection: declared in a `reflection.txt` beside the sources.

The compiler checks all else. But a field that has another name in a new version of Spark is noticed when a statement
needs it and not before, and whatever reads it must not take it for one without a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headwater.listeners.capture.formats import java_parts
from headwater.listeners.capture.formats.plugin import JavaPart


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
