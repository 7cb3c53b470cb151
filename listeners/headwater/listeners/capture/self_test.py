"""Whether all that the Java side reaches by reflection is there, in this driver's Spark and formats."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from itertools import groupby
from typing import Final

from headwater.jvm.loader import ClassOrigin
from headwater.listeners.capture.jvm import DegradedPart, JavaClasses
from headwater.listeners.capture.reflection import ReflectedMember, read_reflection
from headwater.listeners.spark_versions import untested

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
