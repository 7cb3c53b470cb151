"""What a producer emitted so far, kept beside its spool so that another driver can emit the ends of its runs.

The journal alone isn't enough, because segments that everybody has read are dropped. So the progress is written up to
an offset, and a cursor of its own keeps the records after that.

Appends the ends of a dead producer's runs to its spool.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from headwater.errors import HeadwaterError
from headwater.events.avro import Codec, UnknownEvent, current_schema
from headwater.events.clock import micros_of, moment_of
from headwater.events.envelope import Event, EventFamily
from headwater.events.health import Closed
from headwater.events.jobs import JobStarted, JobStatus, JobStatusChanged
from headwater.events.keys import FAMILY, KIND, headers_of, key_of
from headwater.events.kinds import KINDS
from headwater.events.names import JobName
from headwater.events.producer import ProducerTail, inferred_ends
from headwater.journal import Files, Journal, JournalEntry, JournalRecord
from headwater.journal.files import read_file, replace_file

PROGRESS_CURSOR: Final = "progress.spool"
"""The cursor that stands where the noted progress ends. No listener can have this name: it has a dot."""
_FILE: Final = "progress.json"
_LARGEST: Final = 16 << 20


@dataclass
class ProducerProgress:
    """Changes with every event that is emitted; not thread-safe."""

    offset: int = 0
    """The offset behind the last record that is in it."""
    producer: UUID | None = None
    sequence: int = 0
    job_sequence: int = 0
    time: datetime | None = None
    application: str = ""
    runs: dict[UUID, JobName | None] = field(default_factory=dict)
    """Those that began and didn't end."""
    is_closed: bool = False
    is_certain: bool = True
    """False where something may be missing that would change the numbers."""

    def note(self, event: Event, offset: int) -> None:
        self.offset = offset + 1
        self.producer, self.sequence, self.time = event.producer, event.sequence, event.time
        self.application = event.application
        if event.family is EventFamily.JOB:
            self.job_sequence = event.family_sequence
            self.is_certain = True
        if isinstance(event, (JobStarted, JobStatusChanged)) and event.run is not None:
            self._note_run(event, event.run)
        self.is_closed = self.is_closed or isinstance(event, Closed)

    def _note_run(self, event: JobStarted | JobStatusChanged, run: UUID) -> None:
        if isinstance(event, JobStarted) or not event.status.is_terminal:
            self.runs[run] = event.job
        else:
            self.runs.pop(run, None)

    def ends(self) -> tuple[JobStatusChanged, ...]:
        """What has to be reported for the runs of a producer that died; nothing where it closed, or isn't known
        enough."""
        if self.producer is None or self.time is None or self.is_closed or not self.is_certain or not self.runs:
            return ()
        last = JobStatusChanged(
            producer=self.producer,
            sequence=self.sequence,
            time=self.time,
            application=self.application,
            status=JobStatus.UNKNOWN,
        )
        return inferred_ends(ProducerTail(last, self.job_sequence), self.runs)

    def to_json(self) -> bytes:
        fields: dict[str, Any] = {
            "offset": self.offset,
            "producer": str(self.producer) if self.producer else None,
            "sequence": self.sequence,
            "job_sequence": self.job_sequence,
            "time": micros_of(self.time) if self.time else None,
            "application": self.application,
            "runs": [
                {"run": str(run), "job": job.name if job else None, "namespace": job.namespace if job else None}
                for run, job in self.runs.items()
            ],
            "is_closed": self.is_closed,
            "is_certain": self.is_certain,
        }
        return json.dumps(fields).encode()

    @classmethod
    def from_json(cls, data: bytes) -> ProducerProgress:
        fields = json.loads(data)
        return cls(
            offset=int(fields["offset"]),
            producer=UUID(fields["producer"]) if fields["producer"] else None,
            sequence=int(fields["sequence"]),
            job_sequence=int(fields["job_sequence"]),
            time=None if fields["time"] is None else moment_of(fields["time"]),
            application=str(fields["application"]),
            runs={UUID(run["run"]): _parse_job(run) for run in fields["runs"]},
            is_closed=bool(fields["is_closed"]),
            is_certain=bool(fields["is_certain"]),
        )


def write_progress(files: Files, directory: Path, data: bytes, *, durable: bool) -> None:
    replace_file(files, directory / _FILE, data, durable=durable)


def read_progress(files: Files, directory: Path) -> ProducerProgress | None:
    """The progress that was noted, or None where none was, or it can't be read any more."""
    try:
        data = read_file(files, directory / _FILE, _LARGEST)
        return None if data is None else ProducerProgress.from_json(data)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_progress_damaged(files: Files, directory: Path) -> bool:
    """Whether the progress was noted there and can't be read: of its runs nobody can say then that they were killed."""
    return (directory / _FILE).exists() and read_progress(files, directory) is None


def _parse_job(fields: dict[str, str | None]) -> JobName | None:
    return JobName(namespace=fields["namespace"], name=fields["job"]) if fields["job"] else None


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
