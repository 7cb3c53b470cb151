"""Maps a batch of encoded events to rows, one of each key."""

from __future__ import annotations

from collections.abc import Container
from typing import Final, NamedTuple

from headwater.events.avro import Codec, UnknownEvent
from headwater.events.envelope import Event
from headwater.lineage.mapping.events import add_rows
from headwater.lineage.mapping.row_builder import RowBuilder
from headwater.lineage.rows import Row

_NONE: Final[frozenset[bytes]] = frozenset()


class MappedBatch(NamedTuple):
    """The rows of a batch."""

    rows: list[Row]
    """One row for each id."""
    new: list[Row]
    """The immutable rows among them."""
    left_out: list[Row]
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
        batch = MappedBatch([], [], [])
        for row in self._build.drain():
            if row.kind.is_immutable and row.id in self._known:
                batch.left_out.append(row)
                continue
            batch.rows.append(row)
            if row.kind.is_immutable:
                batch.new.append(row)
        return batch
