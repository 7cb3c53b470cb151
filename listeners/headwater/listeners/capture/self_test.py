"""Whether all that the Java side reaches by reflection is there, in this driver's Spark and formats."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from itertools import groupby
from typing import Final

from headwater.listeners.capture.jvm import DegradedPart, JavaClasses
from headwater.listeners.capture.reflection import ReflectedMember, read_reflection
from headwater.listeners.spark_versions import untested

_LOG = logging.getLogger(__name__)
_SECONDS: Final = 60


class SelfTest:
    """Begins at once, on a thread of the JVM: it loads classes, for which the job needn't wait.

    Until it is over, what reads a member that may be absent waits for it. Then it is an error to read one of those that
    should be there and aren't, so the statement that needs it has a Gap and no wrong answer.
    """

    def __init__(self, java: JavaClasses, absent: Collection[str]) -> None:
        """Without those sources whose names begin as what is absent."""
        declared = read_reflection().members
        self._members = [each for each in declared if each.is_checked and not each.source.startswith(tuple(absent))]
        self._test = java.new("SelfTest", "\n".join(map(_line_of, self._members)))
        self._test.start()

    def finish(self, spark: str) -> list[DegradedPart]:
        """What reads something that isn't there, on this version of Spark."""
        said = self._test.missing(_SECONDS)
        if said is None:
            return [DegradedPart("SelfTest", "it didn't come to an end")]
        lines = (line.partition("\t") for line in said.splitlines())
        missing = [(self._members[int(place)], jar) for place, _, jar in lines]
        found = len(self._members) - len(missing)
        level = logging.INFO if untested(spark) is None else logging.WARNING
        words = f"{found} of {len(self._members)} members that are read by reflection are there"
        _LOG.log(level, "Spark %s: %s", spark, words)
        return list(_degraded(missing, spark))


def _line_of(member: ReflectedMember) -> str:
    return "\t".join(("|".join(member.owners), "|".join(member.names), "?" if member.is_optional else "-"))


def _degraded(missing: list[tuple[ReflectedMember, str]], spark: str) -> Iterator[DegradedPart]:
    for source, group in groupby(missing, lambda each: each[0].source):
        found = list(group)
        names = "; ".join(dict.fromkeys(str(member) for member, _ in found))
        jars = ", ".join(sorted({jar for _, jar in found if jar})) or "any jar"
        why = (
            f"{names} can't be found in {jars} (Spark {spark}): each statement that needs it has a Gap; please report "
            "it with these versions"
        )
        yield DegradedPart(source, why, is_there=True)
