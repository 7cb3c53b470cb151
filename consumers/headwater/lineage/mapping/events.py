"""Maps an event, or a batch of encoded ones, to the rows that it changes, one of each key.

The result depends only on the event and on the time at which the bus appended it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Final, NamedTuple

from headwater.events.administration import Administration
from headwater.events.avro import Codec, UnknownEvent
from headwater.events.catalog import CatalogModification
from headwater.events.envelope import Event
from headwater.events.jobs import JobEvent
from headwater.lineage.mapping.administration import map_administration
from headwater.lineage.mapping.catalog import map_catalog_event
from headwater.lineage.mapping.jobs import map_job_event
from headwater.lineage.mapping.row_builder import RowBuilder, arrival_family
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.memory import RowBatch
from headwater.lineage.rows.model import Row, RowTuple

ARRIVALS_PER_ROW: Final = 63
"""How many numbers of a producer's event family one row of `arrivals` records: a signed 64-bit integer has that many
bits."""


def map_event(event: Event, append_time: int | None = None) -> Iterator[Row]:
    """Yield the rows that an event changes, one of each key.

    `append_time` is the bus's time in microseconds; without it the producer's clock is trusted.
    """
    build = RowBuilder()
    add_rows(event, append_time, build)
    return iter(RowBatch(build.drain()))


def add_rows(event: Event, append_time: int | None, build: RowBuilder) -> None:
    """Add the rows that an event changes."""
    build.begin(event, append_time)
    _add_arrival(event, build)
    if isinstance(event, JobEvent):
        map_job_event(event, build)
    elif isinstance(event, CatalogModification):
        map_catalog_event(event, build)
    elif isinstance(event, Administration):
        map_administration(event, build)


def map_arrival(event: Event, append_time: int | None = None) -> Iterator[Row]:
    """Yield the rows that record the arrival of an event. They show holes in a producer's numbering, even in a store
    that keeps nothing else of the event."""
    build = RowBuilder()
    build.begin(event, append_time)
    _add_arrival(event, build)
    return iter(RowBatch(build.drain()))


def _add_arrival(event: Event, build: RowBuilder) -> None:
    block, bit = divmod(event.family_sequence - 1, ARRIVALS_PER_ROW)
    build.numbered(t.ARRIVAL, (build.producer, arrival_family(event), block), 1 << bit)


_NONE: Final[frozenset[bytes]] = frozenset()


class MappedBatch(NamedTuple):
    """The rows of a batch."""

    rows: RowBatch
    """One row for each id."""
    new: RowBatch
    """The immutable rows among them."""
    left_out: RowBatch
    """Immutable rows that the store has already."""


class BatchMapper:
    """Maps batches for one thread. After an error other than a DecodeError it may hold a part of an event: throw it
    away."""

    def __init__(self, codec: Codec | None = None, known: Container[bytes] = _NONE) -> None:
        """`known` are the ids of immutable rows that the store has already."""
        self._known = known
        self._codec = codec or Codec()
        self._build = RowBuilder()

    def add(self, data: bytes, append_time: int | None = None) -> UnknownEvent | None:
        """Add an event. Return what is no event of a known kind; raise a DecodeError if the bytes are no event, and add
        nothing."""
        event = self._codec.decode(data)
        if isinstance(event, UnknownEvent):
            return event
        add_rows(event, append_time, self._build)
        return None

    def add_event(self, event: Event, append_time: int | None = None) -> None:
        """Add a decoded event."""
        add_rows(event, append_time, self._build)

    def drain(self) -> MappedBatch:
        """Return the rows of all events that were added since the last call."""
        rows = self._build.drain()
        known, new = dict[str, list[RowTuple]](), dict[str, list[RowTuple]]()
        for name, some in rows.items():
            if t.KIND_OF[name].is_immutable:
                known[name], new[name] = [], []
                for row in some:
                    (known if row[0] in self._known else new)[name].append(row)
        return MappedBatch(RowBatch({**rows, **new}), RowBatch(new), RowBatch(known))
