"""Map an event to the rows that it changes. The result depends only on the event and on the time at which the bus
appended it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headwater.events.administration import Administration
from headwater.events.catalog import CatalogModification
from headwater.events.envelope import Event
from headwater.events.jobs import JobEvent
from headwater.lineage.mapping.administration import map_administration
from headwater.lineage.mapping.catalog import map_catalog_event
from headwater.lineage.mapping.jobs import map_job_event
from headwater.lineage.mapping.row_builder import RowBuilder, arrival_family
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.model import Row

ARRIVALS_PER_ROW: Final = 63
"""How many numbers of a producer's event family one row of `arrivals` records: a signed 64-bit integer has that many
bits."""


def map_event(event: Event, append_time: int | None = None) -> Iterator[Row]:
    """Yield the rows that an event changes.

    `append_time` is the bus's time in microseconds; without it the producer's clock is trusted. Several rows can have
    the same key; combine them with `merge_by_key`.
    """
    build = RowBuilder(event, append_time)
    yield from map_arrival(event, build)
    if isinstance(event, JobEvent):
        yield from map_job_event(event, build)
    elif isinstance(event, CatalogModification):
        yield from map_catalog_event(event, build)
    elif isinstance(event, Administration):
        yield from map_administration(event, build)


def map_arrival(event: Event, build: RowBuilder) -> Iterator[Row]:
    """Yield the rows that record the arrival of an event. They show holes in a producer's numbering, even in a store
    that keeps nothing else of the event."""
    yield arrival_row(build, arrival_family(event), event.family_sequence)
    if event.part is not None:
        key = (build.producer, build.sequence - event.part.number + 1, event.part.number)
        yield build.observed(t.EVENT_PART, *key)._replace(maxima=(event.part.of, event.kind))


def arrival_row(build: RowBuilder, family: str, number: int) -> Row:
    block, bit = divmod(number - 1, ARRIVALS_PER_ROW)
    return build.observed(t.ARRIVAL, build.producer, family, block)._replace(bits=1 << bit)
