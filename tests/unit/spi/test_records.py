"""A record tells what it is without being decoded, also where it can't be."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from headwater.events.avro import Codec, DecodeError, UnknownEvent
from headwater.events.envelope import Event, EventFamily
from headwater.spi import RecordBatch, RecordError, SpoolPosition
from headwater.testing.examples import EXAMPLES
from headwater.testing.listeners import batch, from_the_future, record

COMMITTED = next(event for event in EXAMPLES if event.kind == "Committed")


def undecodable(data: bytes) -> Event | UnknownEvent:
    raise AssertionError("nobody asked for the event")


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: str(event.kind))
def test_everything_is_reported_without_decoding(event: Event) -> None:
    lazy = replace(record(7, event), decode=undecodable)
    assert (lazy.event_id, lazy.kind, lazy.family) == (event.event_id, event.kind, event.family)


def test_the_event_is_decoded_when_it_is_asked_for_and_once() -> None:
    known = record(7, COMMITTED)
    assert known.event == COMMITTED
    assert known.event is known.event


def test_what_a_later_version_wrote_can_be_passed_on_as_it_is() -> None:
    known = record(7, COMMITTED)
    unknown = from_the_future(known)
    assert isinstance(unknown.event, UnknownEvent)
    assert (unknown.kind, unknown.family, unknown.event_id) == (
        "InventedLater",
        EventFamily.UNKNOWN,
        COMMITTED.event_id,
    )
    assert unknown.key == known.key
    assert Codec().encode(unknown.event) == unknown.data


def test_bytes_that_are_no_event_are_an_error_when_asked_for() -> None:
    broken = replace(record(7, COMMITTED), data=b"{}")
    assert broken.kind == "Committed"
    with pytest.raises(DecodeError, match="JSON"):
        _ = broken.event


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ((), "record at 7 has no header producer"),
        ((("producer", b"7"), ("sequence", b"1")), "record at 7 has no right producer and sequence"),
        ((("producer", str(COMMITTED.producer).encode()), ("sequence", b"\xff")), "no right producer and sequence"),
    ],
)
def test_headers_that_do_not_tell_are_an_error(headers: tuple[tuple[str, bytes], ...], words: str) -> None:
    with pytest.raises(RecordError, match=words):
        _ = replace(record(7, COMMITTED), headers=headers).event_id


def test_a_batch_ends_at_its_last_record() -> None:
    records = batch(EXAMPLES[:3], first=5, step=2)
    assert [each.position for each in records] == [5, 7, 9]
    assert (records.end, len(records)) == (SpoolPosition(9), 3)


def test_a_batch_is_never_empty() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        RecordBatch(())


@pytest.mark.slow
def test_who_only_passes_bytes_on_does_not_load_the_codec() -> None:
    code = "import sys, headwater.spi; sys.exit('fastavro' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_records_are_equal_by_what_they_say() -> None:
    assert record(7, COMMITTED) == replace(record(7, COMMITTED), decode=undecodable)
