"""What a producer emitted so far, kept beside its spool so that another driver can emit the ends of its runs.

The journal alone isn't enough, because segments that everybody has read are dropped. So the progress is written up to
an offset, and a cursor of its own keeps the records after that.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from headwater.events.clock import micros_of, moment_of
from headwater.events.envelope import Event, EventFamily
from headwater.events.health import Closed
from headwater.events.jobs import JobStarted, JobStatus, JobStatusChanged
from headwater.events.names import JobName
from headwater.events.producer import ProducerTail, inferred_ends
from headwater.journal import Files
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
