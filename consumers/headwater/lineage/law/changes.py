"""What an event changes in the store: a pure function of the event and of when the bus appended it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headwater.events.administration import Administration
from headwater.events.catalog import CatalogModification
from headwater.events.envelope import Event
from headwater.events.jobs import JobEvent
from headwater.lineage.law.catalog import of_catalog
from headwater.lineage.law.jobs import of_job
from headwater.lineage.law.others import of_administration
from headwater.lineage.law.telling import Telling
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.kinds import Row

BLOCK: Final = 63
"""Numbers of a producer's family in one row of those that arrived: as many bits as a LONG has for it."""


def changes(event: Event, appended: int | None = None) -> Iterator[Row]:
    """The rows that an event tells. `appended` is the bus's time in microseconds; without a bus nothing bounds a clock.

    Rows of one key may come more than once: `collapsed` makes one of them.
    """
    tell = Telling(event, appended)
    yield from arrival(event, tell)
    if isinstance(event, JobEvent):
        yield from of_job(event, tell)
    elif isinstance(event, CatalogModification):
        yield from of_catalog(event, tell)
    elif isinstance(event, Administration):
        yield from of_administration(event, tell)


def arrival(event: Event, tell: Telling) -> Iterator[Row]:
    """That this number of its producer's arrived: holes are found by it, also by a store that keeps nothing else of the
    event."""
    yield received(tell, event.family.value, event.family_sequence)
    if event.part is not None:
        key = (tell.producer, tell.sequence - event.part.number + 1, event.part.number)
        yield tell.seen(t.PART, *key)._replace(fixed=(event.part.of, event.kind))


def received(tell: Telling, family: str, number: int) -> Row:
    block, bit = divmod(number - 1, BLOCK)
    return tell.seen(t.RECEIVED, tell.producer, family, block)._replace(bits=1 << bit)
