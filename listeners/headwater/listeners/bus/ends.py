"""The ends of a dead producer's runs, told into its spool."""

from __future__ import annotations

import logging

from headwater.errors import HeadwaterError
from headwater.events.avro import Codec, UnknownEvent, current_schema
from headwater.events.envelope import Event
from headwater.events.health import Closed
from headwater.events.jobs import JobStarted, JobStatusChanged
from headwater.events.keys import FAMILY, KIND, headers_of, key_of
from headwater.events.kinds import KINDS
from headwater.journal import Entry, Files, Journal, Record
from headwater.listeners.bus.course import Course, read_course

_LOG = logging.getLogger(__name__)
_TELLING = (JobStarted, JobStatusChanged, Closed)
_PASSED_OVER = frozenset(name.encode() for name, kind in KINDS.items() if not issubclass(kind, _TELLING))
"""Kinds of which only the last event matters, for its number."""


def append_ends(journal: Journal, files: Files) -> None:
    """Tell the ends of a dead producer's runs into its spool. Whoever does it makes the same events, and a second time
    there is nothing to tell any more."""
    course = read_course(files, journal.directory)
    if course is None and journal.first_offset > 0:
        return  # what was cut off can't be known any more, and a wrong number is worse than no end
    reading = _Reading(course or Course())
    with journal.tail(reading.course.offset) as tail:
        while batch := tail.read(1_000, 8 << 20):
            if batch.lost:
                reading.lose()
            for record in batch.records:
                reading.see(record)
    course = reading.end()
    ends = course.ends()
    codec = Codec()
    entries = [Entry(codec.encode(end), key_of(end), _headers(end)) for end in ends]
    if entries:
        journal.append_many(entries)
        _LOG.info("%s runs in %s have ended with their driver", len(ends), journal.directory)


def _headers(end: Event) -> tuple[tuple[str, bytes], ...]:
    return headers_of(end, current_schema(type(end)).fingerprint)


class _Reading:
    """Sees the records of a spool in order. Only those are decoded that begin or end something, and the last: a driver
    can have left a million of others."""

    def __init__(self, course: Course) -> None:
        self.course = course
        self._codec = Codec()
        self._last: dict[bytes, Record] = {}
        """Of each family, what wasn't decoded."""

    def see(self, record: Record) -> None:
        headers = dict(record.headers)
        if headers.get(KIND) in _PASSED_OVER and FAMILY in headers:
            self._last[headers[FAMILY]] = record
        else:
            self.end()
            self._note(record)

    def lose(self) -> None:
        """Something is missing here."""
        self.end().is_certain = False

    def end(self) -> Course:
        """The course up to here."""
        for record in sorted(self._last.values(), key=lambda each: each.offset):
            self._note(record)
        self._last.clear()
        return self.course

    def _note(self, record: Record) -> None:
        course = self.course
        try:
            decoded = self._codec.decode(record.value)
        except HeadwaterError:
            course.is_certain = False
            return
        event = decoded.known if isinstance(decoded, UnknownEvent) else decoded
        if isinstance(event, Event):
            course.note(event, record.offset)
        else:
            course.is_certain = False
