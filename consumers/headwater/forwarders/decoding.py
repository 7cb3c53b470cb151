"""Makes events of the records of a bus for one forwarder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headwater.consumers.sources import BusRecord
from headwater.errors import HeadwaterError
from headwater.events import Event
from headwater.events.avro import Codec, DecodeError, UnknownEvent
from headwater.events.errors import Problem
from headwater.events.jobs import JobLineage
from headwater.forwarders.api import BusEvent
from headwater.forwarders.dead_letters import Rejection
from headwater.forwarders.known_lineage import LineageCache
from headwater.lineage.bulk import DeadLetterReason


class ForwarderBatch(NamedTuple):
    """What became of records: each is an event, or a dead letter, or both where only a part of it is known here."""

    events: list[BusEvent]
    rejections: list[Rejection]


def decode_records(codec: Codec, records: Sequence[BusRecord], lineage: LineageCache) -> ForwarderBatch:
    """Return the events of these records. The job lineage among them is on disk then."""
    batch = ForwarderBatch([], [])
    for record in records:
        _add(codec, record, batch)
    lineage.remember(each.event for each in batch.events if isinstance(each.event, JobLineage))
    return batch


def decode_record(codec: Codec, record: BusRecord) -> Event:
    """Return the event of a record. Raises a TerminalError if that isn't possible."""
    found = codec.decode(record.data)
    event = found.known if isinstance(found, UnknownEvent) else found
    if event is None:
        raise DecodeError(Problem.MALFORMED, "this version of headwater doesn't know its kind or schema")
    return event


def _add(codec: Codec, record: BusRecord, batch: ForwarderBatch) -> None:
    try:
        found = codec.decode(record.data)
    except DecodeError as e:
        batch.rejections.append(Rejection(DeadLetterReason.UNDECODABLE, str(e), (record,)))
        return
    except (HeadwaterError, MemoryError):
        raise
    except Exception as e:  # noqa: BLE001 - whatever bytes do to the decoder
        error = str(DecodeError(Problem.MALFORMED, f"{type(e).__name__}: {e}"))
        batch.rejections.append(Rejection(DeadLetterReason.UNDECODABLE, error, (record,)))
        return
    event = found.known if isinstance(found, UnknownEvent) else found
    if isinstance(found, UnknownEvent):
        batch.rejections.append(_unknown(record, found))
    if event is not None:
        batch.events.append(BusEvent(event, record))


def _unknown(record: BusRecord, found: UnknownEvent) -> Rejection:
    what = "schema" if found.kind is None else "version" if found.known is not None else "kind"
    words = f"its {what} isn't known to this version of headwater"
    if found.known is not None:
        words = f"{words}; what is known of it was sent"
    event = None if found.known is None else found.known.event_id
    return Rejection(DeadLetterReason.UNKNOWN, words, (record,), event, found.kind)
