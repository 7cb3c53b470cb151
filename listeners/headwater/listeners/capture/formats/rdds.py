"""What the RDDs of formats read, where they show it: below a DataFrame's `rdd` nothing else of its plan is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from headwater.events.jobs import SourceSchema
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.protocol import ReadVersion
from headwater.listeners.capture.statements import FormatFact


@dataclass(frozen=True)
class RddSource:
    """A dataset that an RDD reads."""

    source: SourceSchema
    version: ReadVersion


@runtime_checkable
class RddFormat(Protocol):
    """A format whose own RDDs show what they read."""

    def rdd_sources(self, fact: FormatFact, context: CaptureContext) -> tuple[RddSource, ...]:
        """What an RDD reads, by what the format's extractor wrote of it; nothing where that isn't certain."""
        ...


def sources_of_rdds(facts: Iterable[FormatFact], context: CaptureContext) -> Iterator[RddSource]:
    """Yield what is read of formats, by the facts of their RDDs."""
    readers = context.formats.readers()
    for fact in facts:
        reader = readers.get(str(fact.get("format")))
        if isinstance(reader, RddFormat):
            yield from reader.rdd_sources(fact, context)
