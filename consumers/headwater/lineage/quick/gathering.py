"""The rows of a batch of events. Whatever isn't a plain case goes the law's own way."""

from __future__ import annotations

from collections.abc import Container
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from headwater.events.avro import Codec, SchemaMessage, UnknownEvent
from headwater.events.avro.plain import envelope_of, kind_of
from headwater.events.envelope import Event, Family
from headwater.events.jobs import Committed, JobLineage
from headwater.lineage.law import changes, collapsed
from headwater.lineage.law.changes import BLOCK
from headwater.lineage.law.telling import capped, row_id, stamp_of
from headwater.lineage.quick.again import Agains, Telling
from headwater.lineage.quick.commits import QuickCommits
from headwater.lineage.rows import Row, Span, merged
from headwater.lineage.rows import tables as t

_COMMITTED: Final = Committed.__name__
_LINEAGE: Final = JobLineage.__name__
_JOB: Final = Family.JOB.value
_NONE: Final[frozenset[bytes]] = frozenset()
_MOST_SHAPES: Final = 1 << 14
_MOST_BYTES: Final = 8 << 20
"""Of the events that they were learned from: rows of a shape take some ten times as much."""


class Gathered(NamedTuple):
    """Of a batch."""

    rows: list[Row]
    """One of each id."""
    new: list[Row]
    """The lasting ones among them."""
    left_out: list[Row]
    """Lasting ones that were said to be known. One may be there more than once."""


class Gathering:
    """For one thread. What was learned of tables, jobs and shapes is kept from batch to batch."""

    def __init__(self, codec: Codec | None = None, known: Container[bytes] = _NONE) -> None:
        """`known` are ids of lasting rows that needn't be told again."""
        self._known = known
        self._codec = codec or Codec()
        self._rows: dict[bytes, Row] = {}
        self._lasting: dict[bytes, Row] = {}
        self._left_out: list[Row] = []
        self._agains = Agains()
        self._commits = QuickCommits(self._agains)
        self._shapes: dict[bytes, Telling] = {}
        self._shape_bytes = 0
        self._arrived: dict[tuple[bytes, int], list[int]] = {}

    def add(self, data: bytes, appended: int | None = None) -> UnknownEvent | SchemaMessage | None:
        """Take in an event, or give back what is none of ours. A DecodeError where it is none at all; nothing of it is
        taken in then."""
        kind = kind_of(data)
        if kind == _COMMITTED:
            return self._add_commit(data, appended)
        if kind == _LINEAGE:
            return self._add_shape(data, appended)
        return self._add_any(data, appended)

    def add_event(self, event: Event, appended: int | None = None) -> None:
        """One that was decoded already."""
        self._merge_all(event, appended)

    def take(self) -> Gathered:
        """The rows of all that was added since this was asked last."""
        for again in self._agains.take():
            for row in again.take():
                self._merge(row)
            for row in again.lasting:
                self._merge_lasting(row)
        for row in self._received():
            self._merge(row)
        rows, lasting, left_out = self._rows, self._lasting, self._left_out
        self._rows, self._lasting, self._left_out = {}, {}, []
        return Gathered([*rows.values(), *lasting.values()], list(lasting.values()), left_out)

    def _add_commit(self, data: bytes, appended: int | None) -> UnknownEvent | SchemaMessage | None:
        told = self._commits.rows(data, appended)
        if told is None:
            return self._add_new_commit(data, appended)
        arrival, rows = told
        self._arrive(*arrival)
        held = self._rows
        for row in rows:
            known = held.get(row.id)
            held[row.id] = row if known is None else merged(known, row)
        return None

    def _add_new_commit(self, data: bytes, appended: int | None) -> UnknownEvent | SchemaMessage | None:
        found = self._codec.decode(data)
        if not isinstance(found, Event):
            return found
        self._merge_all(found, appended)
        if isinstance(found, Committed):
            self._commits.learn(data, found)
        return None

    def _add_shape(self, data: bytes, appended: int | None) -> UnknownEvent | SchemaMessage | None:
        """What such an event tells is in the bytes behind its envelope, apart from its job and run."""
        opened = envelope_of(data, _LINEAGE)
        if opened is None:
            return self._add_any(data, appended)
        envelope, end = opened
        key = _shape_key(envelope, data[end:])
        telling = self._shapes.get(key)
        if telling is None:
            telling = self._learned_shape(key, self._decoded(data), len(data))
        time = capped(envelope["time"], appended)
        stamp = stamp_of(time, envelope["producer"], envelope["sequence"])
        self._agains.tell(telling, envelope["run"], time, stamp)
        self._arrive(envelope["producer"], envelope["family_sequence"], time)
        return None

    def _learned_shape(self, key: bytes, event: Event, size: int) -> Telling:
        self._shape_bytes += size
        if len(self._shapes) > _MOST_SHAPES or self._shape_bytes > _MOST_BYTES:
            self._shapes.clear()
            self._shape_bytes = size
        telling = self._shapes[key] = Telling(changes(event))
        return telling

    def _add_any(self, data: bytes, appended: int | None) -> UnknownEvent | SchemaMessage | None:
        found = self._codec.decode(data)
        if not isinstance(found, Event):
            return found
        self._merge_all(found, appended)
        return None

    def _decoded(self, data: bytes) -> Any:
        return self._codec.decode(data)

    def _merge_all(self, event: Event, appended: int | None) -> None:
        for row in collapsed(changes(event, appended)).values():
            if row.kind.lasting:
                self._merge_lasting(row)
            else:
                self._merge(row)

    def _arrive(self, producer: bytes, number: int, time: int) -> None:
        """Of the family of jobs. One row is made of many at the end."""
        block, bit = divmod(number - 1, BLOCK)
        found = self._arrived.get((producer, block))
        if found is None:
            self._arrived[producer, block] = [time, time, 1 << bit]
            return
        if time < found[0]:
            found[0] = time
        elif time > found[1]:
            found[1] = time
        found[2] |= 1 << bit

    def _received(self) -> list[Row]:
        arrived, self._arrived = self._arrived, {}
        return [
            Row(t.RECEIVED, row_id(t.RECEIVED, key), key, (), Span(first, last), (), bits)
            for (producer, block), (first, last, bits) in arrived.items()
            for key in [(producer, _JOB, block)]
        ]

    def _merge(self, row: Row) -> None:
        known = self._rows.get(row.id)
        self._rows[row.id] = row if known is None else merged(known, row)

    def _merge_lasting(self, row: Row) -> None:
        if row.id in self._known:
            self._left_out.append(row)
            return
        held = self._lasting.get(row.id)
        self._lasting[row.id] = row if held is None else merged(held, row)


def _shape_key(envelope: dict[str, Any], rest: bytes) -> bytes:
    told = repr(envelope["job"]).encode()
    return blake2b(b"%d:%b%b" % (len(told), told, rest), digest_size=16).digest()
