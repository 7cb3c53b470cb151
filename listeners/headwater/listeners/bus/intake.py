"""What of a spool a listener is to be handed: the records of its own families, in order, and the holes between them."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable

from headwater.events.avro import Codec, DecodeError, SchemaMessage, UnknownEvent
from headwater.events.avro.errors import Problem
from headwater.events.envelope import Event, Family
from headwater.events.keys import FAMILY
from headwater.journal import Cursor, Journal, Lost
from headwater.journal import Record as Kept
from headwater.listeners.bus.holes import Hole, Holes
from headwater.listeners.bus.news import News
from headwater.listeners.bus.options import BusOptions
from headwater.spi import Batch, Record

_LOG = logging.getLogger(__name__)
OnLost = Callable[[str, Holes, Hole], None]
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
        self._holes = Holes(journal.directory, families, begins=cursor.committed == 0)
        self._decode = _decoder()
        self._ahead: deque[Hole | list[Kept]] = deque()
        """What was read and isn't dealt with, in order; of records that are none of the listener's the last ones do."""
        self._position = 0
        self._seen = News()

    def read(self, since: int, wait: float) -> list[Kept]:
        """The next records from that offset on; none where there are none, or they are none of this listener's."""
        read = self._cursor.read(self._options.batch_count, self._options.batch_bytes, wait)
        for lost in read.lost:
            if lost.following > since:
                self._ahead.append(self._holes.met(lost, read.records))
                self._warn(lost)
        wanted = [each for each in read.records if each.offset >= since and self._is_wanted(each)]
        if read.records:
            self._keep(wanted, read.records[-1])
        return wanted

    def dealt(self, position: int) -> None:
        """The listener has dealt with all before that offset. A hole is told only now: until then it may still grow,
        and what stands before it may be lost too."""
        self._position = position
        while self._ahead and _end(self._ahead[0]) <= position:
            first = self._ahead.popleft()
            if not isinstance(first, Hole):
                self._holes.note(first)
            elif self._holes.is_news(first.lost):
                self._on_lost(self._name, self._holes, first)

    def give_up(self) -> None:
        """What isn't dealt with will be read again."""
        if self._ahead and not isinstance(first := self._ahead[0], Hole):
            self._holes.note([each for each in first if each.offset < self._position])
        self._ahead.clear()

    def _keep(self, wanted: list[Kept], last: Kept) -> None:
        if wanted:
            self._ahead.append(wanted if wanted[-1] is last else [*wanted, last])
            return
        before = self._ahead[-1] if self._ahead else None
        if isinstance(before, list) and not self._is_wanted(before[-1]):
            before[-1] = last
        else:
            self._ahead.append([last])

    def _warn(self, lost: Lost) -> None:
        if self._seen.is_news(str(lost.following)):
            missing = lost.following - lost.first
            _LOG.warning("listener %s: %d records are gone from its spool (%s)", self._name, missing, lost.why.value)

    def batch(self, records: Iterable[Kept]) -> Batch:
        """As they are handed over."""
        return Batch(
            [Record.of(each.offset, each.value, each.key or b"", each.headers, self._decode) for each in records]
        )

    def _is_wanted(self, record: Kept) -> bool:
        """By the header alone; a family that isn't known here may be anybody's."""
        return not self._passed_over or dict(record.headers).get(FAMILY) not in self._passed_over


def _end(read: Hole | list[Kept]) -> int:
    return read.lost.following if isinstance(read, Hole) else read[-1].offset + 1


def _decoder() -> Callable[[bytes], Event | UnknownEvent]:
    codec = Codec()

    def decode(data: bytes) -> Event | UnknownEvent:
        decoded = codec.decode(data)
        if isinstance(decoded, SchemaMessage):
            raise DecodeError(Problem.MALFORMED, "it is a schema, and no event")
        return decoded

    return decode
