"""What an examination writes: a producer that tells exactly one event, `Closed`. Readers take it for a driver that came
and went without doing anything."""

from __future__ import annotations

from headwater.events.avro import Codec, current_schema
from headwater.events.envelope import Event
from headwater.events.health import Closed
from headwater.events.keys import headers_of, key_of
from headwater.events.producer import Producer
from headwater.spi import Application, Position, Record


def trial_record(application: Application) -> Record:
    """The event as it would come out of a spool."""
    records: list[Record] = []

    def append(event: Event, data: bytes) -> None:
        headers = headers_of(event, current_schema(type(event)).fingerprint)
        records.append(Record(Position(0), data, key_of(event), headers, Codec().decode))  # type: ignore[arg-type]

    Producer(application.id).emit(Closed(), append)
    return records[0]
