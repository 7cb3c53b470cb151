"""Records that nobody of ours wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headwater.events import Event
from headwater.events.avro import Codec
from headwater.events.keys import headers_of, key_of
from headwater.local import KafkaServer
from tests.kit import topics
from tests.kit.forwarders.stage import commit
from tests.kit.raw_records import RawRecord, send_raw

JOB = "etl\x1b[2J"
NOT_TEXT = RawRecord(b"no event", b"\xff", ((b"kind", b"Committed"), (b"\xff\xfekind", b"v"), (b"", None)))
EMPTY = RawRecord(None, None, ((b"a\0b", b"\0"), (b"\xed\xa0\x80", b"")))
OLD = RawRecord(b"\xc3\x01" + bytes(9), b"", (), -(2**62))


def event(number: int) -> Event:
    return commit(number, JOB)


def sound(number: int, *more: tuple[bytes, bytes]) -> RawRecord:
    """An event; `more` are headers that it comes with."""
    headers = [(name.encode(), value) for name, value in headers_of(event(number), bytes(8))]
    return RawRecord(Codec().encode(event(number)), key_of(event(number)), (*headers, *more), 1_700_000_000_000)


class Topic(NamedTuple):
    name: str
    bus: str
    sound: int
    """How many events were sent whole: one behind each hostile record."""


def new_topic(kafka: KafkaServer, records: Sequence[RawRecord], time_type: str = "LogAppendTime") -> Topic:
    """A topic with these records, and an event behind each. What is old by its own time doesn't expire meanwhile:
    a broker looks for that half a minute after its start."""
    settings = {"message.timestamp.type": time_type, "retention.ms": "-1"}
    name = topics.new_topic(kafka.address, "hostile", settings=settings)
    for number, each in enumerate(records, 1):
        send_raw(kafka.address, name, [each])
        send_raw(kafka.address, name, [sound(number)])
    return Topic(name, f"kafka://{kafka.address}/{name}", len(records))


FIXED = [NOT_TEXT, EMPTY, OLD, sound(1)._replace(headers=NOT_TEXT.headers)]
