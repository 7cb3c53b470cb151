"""Maps a batch of encoded events to rows, one of each key."""

from __future__ import annotations

from collections.abc import Container
from typing import Final, NamedTuple

from headwater.events.avro import Codec, UnknownEvent
from headwater.events.envelope import Event
from headwater.lineage.mapping.events import add_rows
from headwater.lineage.mapping.row_builder import RowBuilder
from headwater.lineage.rows import RowBatch
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.model import RowTuple

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
