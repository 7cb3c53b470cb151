"""What of a spool a listener is to be handed: the records of its own families, in order, and the holes between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headwater.events.avro import Codec, DecodeError, SchemaMessage, UnknownEvent
from headwater.events.avro.errors import Problem
from headwater.events.envelope import Event, Family
from headwater.events.keys import FAMILY
from headwater.journal import Cursor, Journal, Lost
from headwater.journal import Record as Kept
from headwater.listeners.bus.holes import Holes
from headwater.listeners.bus.options import BusOptions
from headwater.spi import Batch, Position, Record

OnLost = Callable[[str, Holes, Lost], None]
"""Takes a listener's name, what its lane knows of the spool before the hole, and the hole."""


class Intake:
    """For one listener's thread."""

    def __init__(
        self,
        name: str,
        journal: Journal,
        cursor: Cursor,
        families: frozenset[Family],
        options: BusOptions,
        *,
        on_lost: OnLost,
    ) -> None:
        self._name = name
        self._cursor = cursor
        self._passed_over = {each.value.encode() for each in Family if each not in families and each != Family.UNKNOWN}
        self._options = options
        self._on_lost = on_lost
        self._holes = Holes(journal.directory, begins=cursor.committed == 0)
        self._decode = _decoder()

    def read(self, since: int, wait: float) -> list[Kept]:
        """The next records from that offset on; none where there are none, or they are none of this listener's."""
        read = self._cursor.read(self._options.batch_count, self._options.batch_bytes, wait)
        for lost in read.lost:
            if self._holes.is_news(lost):
                self._on_lost(self._name, self._holes, lost)
        wanted = [each for each in read.records if each.offset >= since and self._is_wanted(each)]
        self._holes.note(read.records)
        return wanted

    def batch(self, records: Iterable[Kept]) -> Batch:
        """As they are handed over."""
        return Batch([Record(Position(k.offset), k.value, k.key or b"", k.headers, self._decode) for k in records])

    def _is_wanted(self, record: Kept) -> bool:
        """By the header alone; a family that isn't known here may be anybody's."""
        return not self._passed_over or dict(record.headers).get(FAMILY) not in self._passed_over


def _decoder() -> Callable[[bytes], Event | UnknownEvent]:
    codec = Codec()

    def decode(data: bytes) -> Event | UnknownEvent:
        decoded = codec.decode(data)
        if isinstance(decoded, SchemaMessage):
            raise DecodeError(Problem.MALFORMED, "it is a schema, and no event")
        return decoded

    return decode
