"""The ends of a dead producer's runs, told into its spool."""

from __future__ import annotations

import logging

from headwater.errors import HeadwaterError
from headwater.events.avro import Codec, UnknownEvent, current_schema
from headwater.events.envelope import Event
from headwater.events.keys import headers_of, key_of
from headwater.journal import Entry, Files, Journal, Record
from headwater.listeners.bus.course import Course, read_course

_LOG = logging.getLogger(__name__)


def append_ends(journal: Journal, files: Files) -> None:
    """Tell the ends of a dead producer's runs into its spool. Whoever does it makes the same events, and a second time
    there is nothing to tell any more."""
    course = read_course(files, journal.directory)
    if course is None and journal.first_offset > 0:
        return  # what was cut off can't be known any more, and a wrong number is worse than no end
    course = course or Course()
    codec = Codec()
    with journal.tail(course.offset) as tail:
        while batch := tail.read(1_000, 8 << 20):
            course.is_certain = course.is_certain and not batch.lost
            for record in batch.records:
                _note(course, record, codec)
    ends = course.ends()
    entries = [Entry(codec.encode(end), key_of(end), _headers(end)) for end in ends]
    if entries:
        journal.append_many(entries)
        _LOG.info("%s runs in %s have ended with their driver", len(ends), journal.directory)


def _headers(end: Event) -> tuple[tuple[str, bytes], ...]:
    return headers_of(end, current_schema(type(end)).fingerprint)


def _note(course: Course, record: Record, codec: Codec) -> None:
    try:
        decoded = codec.decode(record.value)
    except HeadwaterError:
        course.is_certain = False
        return
    event = decoded.known if isinstance(decoded, UnknownEvent) else decoded
    if isinstance(event, Event):
        course.note(event, record.offset)
    else:
        course.is_certain = False
