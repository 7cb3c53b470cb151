"""Appends the ends of a dead producer's runs to its spool."""

from __future__ import annotations

import logging

from headwater.errors import HeadwaterError
from headwater.events.avro import Codec, UnknownEvent, current_schema
from headwater.events.envelope import Event
from headwater.events.health import Closed
from headwater.events.jobs import JobStarted, JobStatusChanged
from headwater.events.keys import FAMILY, KIND, headers_of, key_of
from headwater.events.kinds import KINDS
from headwater.journal import Files, Journal, JournalEntry, JournalRecord
from headwater.listeners.bus.producer_progress import ProducerProgress, read_progress

_LOG = logging.getLogger(__name__)
_DECODED_KINDS = (JobStarted, JobStatusChanged, Closed)
_SKIPPED_KINDS = frozenset(name.encode() for name, kind in KINDS.items() if not issubclass(kind, _DECODED_KINDS))
"""Kinds of which only the last event matters, for its number."""


def append_run_ends(journal: Journal, files: Files) -> None:
    """Append the ends of a dead producer's runs to its spool.

    Every driver makes the same events, and a second call appends nothing.
    """
    progress = read_progress(files, journal.directory)
    if progress is None and journal.first_offset > 0:
        return  # what was cut off can't be known any more, and a wrong number is worse than no end
    reading = _SpoolScan(progress or ProducerProgress())
    with journal.tail(reading.progress.offset) as tail:
        while batch := tail.read(1_000, 8 << 20):
            if batch.missing:
                reading.mark_lost()
            for record in batch.records:
                reading.add(record)
    progress = reading.finish()
    ends = progress.ends()
    codec = Codec()
    entries = [JournalEntry(codec.encode(end), key_of(end), _headers_of(end)) for end in ends]
    if entries:
        journal.append_many(entries)
        _LOG.info("%s runs in %s have ended with their driver", len(ends), journal.directory)


def _headers_of(end: Event) -> tuple[tuple[str, bytes], ...]:
    return headers_of(end, current_schema(type(end)).fingerprint)


class _SpoolScan:
    """Sees the records of a spool in order. Only those are decoded that begin or end something, and the last: a driver
    can have left a million of others."""

    def __init__(self, progress: ProducerProgress) -> None:
        self.progress = progress
        self._codec = Codec()
        self._last: dict[bytes, JournalRecord] = {}
        """Of each family, what wasn't decoded."""

    def add(self, record: JournalRecord) -> None:
        headers = dict(record.headers)
        if headers.get(KIND) in _SKIPPED_KINDS and FAMILY in headers:
            self._last[headers[FAMILY]] = record
        else:
            self.finish()
            self._note(record)

    def mark_lost(self) -> None:
        """Something is missing here."""
        self.finish().is_certain = False

    def finish(self) -> ProducerProgress:
        """The progress up to here."""
        for record in sorted(self._last.values(), key=lambda record: record.offset):
            self._note(record)
        self._last.clear()
        return self.progress

    def _note(self, record: JournalRecord) -> None:
        progress = self.progress
        try:
            decoded = self._codec.decode(record.value)
        except HeadwaterError:
            progress.is_certain = False
            return
        event = decoded.known if isinstance(decoded, UnknownEvent) else decoded
        if isinstance(event, Event):
            progress.note(event, record.offset)
        else:
            progress.is_certain = False
