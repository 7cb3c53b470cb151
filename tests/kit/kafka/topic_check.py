"""Whether what is on a topic is what was reported: nothing lost, nothing made up, nothing changed, all in its order.

What the bus tells by itself (a Gap, the end of a run whose driver was killed) isn't in a ledger. It is distinguished by
its kind, and its place in the producer's order must be free otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from headwater.events import Closed, Gap, JobStatusChanged
from headwater.events.avro import Codec, Decoded
from headwater.events.envelope import Event, EventId
from headwater.events.keys import PRODUCER, SCHEMA, SEQUENCE
from tests.kit.kafka.ledger import SpooledEvent, digest_of
from tests.kit.kafka.topic_copies import Copy

_MANY = 5


@dataclass(frozen=True)
class Verdict:
    """What was found on a topic on which all is right."""

    emitted: int
    events: int
    copies: int
    own: int
    """Events that the bus reported by itself."""


@dataclass(frozen=True)
class _Arrived:
    """The message of an event."""

    id: EventId
    copy: Copy
    event: Decoded


def check_topic(
    emitted: Sequence[SpooledEvent],
    copies: Sequence[Copy],
    *,
    unnoted: int = 0,
    may_have_holes: bool = False,
    is_ordered: bool = True,
) -> Verdict:
    """An AssertionError names everything that is wrong.

    A producer that was killed may have reported so many more events than it could note (`unnoted`). Where a disk
    failed so that nobody knows whether a record is in, its place stays free: then there `may_have_holes`. A
    topic that was made anew while it was written to isn't ordered.
    """
    arrived, faults = _sorted_out(copies)
    firsts: dict[EventId, _Arrived] = {}
    for each in arrived:
        firsts.setdefault(each.id, each)
    own = [each for each in firsts.values() if _is_own(each.event)]
    faults += _lost(emitted, firsts)
    faults += _changed(emitted, arrived, firsts)
    faults += _made_up(emitted, firsts, unnoted)
    faults += _out_of_order(firsts.values()) if is_ordered else []
    faults += [] if may_have_holes else _holes(firsts)
    assert not faults, "\n".join(_shown(faults))
    return Verdict(len(emitted), len(firsts), len(arrived), len(own))


def _sorted_out(copies: Sequence[Copy]) -> tuple[list[_Arrived], list[str]]:
    codec = Codec()
    arrived: list[_Arrived] = []
    faults: list[str] = []
    for copy in copies:
        event = codec.decode(copy.value)
        id_ = EventId(UUID(copy.headers[PRODUCER].decode()), int(copy.headers[SEQUENCE]))
        if isinstance(event, Event) and event.event_id != id_:
            faults.append(f"the headers say {id_}, and the event {event.event_id}")
        if copy.headers[SCHEMA] != copy.value[2:10].hex().encode():
            faults.append(f"{id_}: its header names another schema than its bytes")
        arrived.append(_Arrived(id_, copy, event))
    return arrived, faults


def _is_own(event: Decoded) -> bool:
    return isinstance(event, Gap | Closed) or (isinstance(event, JobStatusChanged) and event.inferred)


def _lost(emitted: Sequence[SpooledEvent], firsts: dict[EventId, _Arrived]) -> Iterator[str]:
    return (f"LOST: {each.kind} {each.id}" for each in emitted if each.id not in firsts)


def _changed(
    emitted: Sequence[SpooledEvent], arrived: Sequence[_Arrived], firsts: dict[EventId, _Arrived]
) -> Iterator[str]:
    for each in arrived:
        copy, first = each.copy, firsts[each.id].copy
        if (copy.key, copy.value, copy.headers) != (first.key, first.value, first.headers):
            yield f"{each.id}: two copies differ (offsets {first.offset} and {copy.offset})"
    for one in emitted:
        if one.id in firsts and digest_of(firsts[one.id].copy.value) != one.digest:
            yield f"{one.id}: other bytes were told than arrived"
        if one.id in firsts and firsts[one.id].copy.key != one.key:
            yield f"{one.id}: the key is {firsts[one.id].copy.key!r} and should be {one.key!r}"


def _made_up(emitted: Sequence[SpooledEvent], firsts: dict[EventId, _Arrived], unnoted: int) -> Iterator[str]:
    known = {each.id for each in emitted}
    last: dict[UUID, int] = {}
    for one in emitted:
        last[one.id.producer] = max(last.get(one.id.producer, 0), one.id.sequence)
    extra: dict[UUID, int] = defaultdict(int)
    for id_, each in firsts.items():
        if id_ in known or _is_own(each.event):
            continue
        extra[id_.producer] += 1
        if id_.sequence < last.get(id_.producer, 0) or extra[id_.producer] > unnoted:
            yield f"nobody told {id_} ({type(each.event).__name__})"


def _out_of_order(firsts: Iterable[_Arrived]) -> Iterator[str]:
    """The first copies of each key are in one partition, and in the order of each producer."""
    partitions: dict[bytes | None, set[int]] = defaultdict(set)
    latest: dict[tuple[bytes | None, UUID], int] = {}
    for each in firsts:  # as they lie in their partitions
        key = each.copy.key
        partitions[key].add(each.copy.partition)
        before = latest.get((key, each.id.producer), 0)
        if each.id.sequence <= before:
            yield f"{each.id} lies behind {before} of the same key {key!r}"
        latest[key, each.id.producer] = max(each.id.sequence, before)
    for key, where in partitions.items():
        if len(where) > 1:
            yield f"the key {key!r} is in partitions {sorted(where)}"


def _holes(firsts: dict[EventId, _Arrived]) -> Iterator[str]:
    sequences: dict[UUID, set[int]] = defaultdict(set)
    for id_ in firsts:
        sequences[id_.producer].add(id_.sequence)
    for producer, found in sequences.items():
        missing = set(range(1, max(found) + 1)) - found
        if missing:
            yield f"{producer}: sequences {sorted(missing)[:_MANY]} … are on no partition ({len(missing)})"


def _shown(faults: Sequence[str]) -> Iterator[str]:
    yield f"{len(faults)} faults:"
    yield from faults[: 4 * _MANY]
