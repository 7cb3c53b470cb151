"""What a producer told so far, as far as its end can be told by it: kept beside its spool for whoever finds that.

The journal alone doesn't do, because what everybody has read is cut off it. So the course is noted up to an offset, and
a cursor of its own keeps what comes after that from being cut.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from headwater.events.clock import micros_of, moment_of
from headwater.events.envelope import Event, Family
from headwater.events.health import Closed
from headwater.events.inferred import LastWords, inferred_ends
from headwater.events.jobs import JobStarted, JobStatus, JobStatusChanged
from headwater.events.names import JobName
from headwater.journal import Files
from headwater.journal.files import read_file, replace_file

GUARD: Final = "course.spool"
"""The cursor that stands where the noted course ends. No listener can have this name: it has a dot."""
_FILE: Final = "course.json"
_LARGEST: Final = 16 << 20


@dataclass
class Course:
    """Changed by every event that is told; not thread-safe."""

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
        if event.family is Family.JOB:
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
        """What has to be told for the runs of a producer that died; nothing where it closed, or isn't known enough."""
        if self.producer is None or self.time is None or self.is_closed or not self.is_certain or not self.runs:
            return ()
        last = JobStatusChanged(
            producer=self.producer,
            sequence=self.sequence,
            time=self.time,
            application=self.application,
            status=JobStatus.UNKNOWN,
        )
        return inferred_ends(LastWords(last, self.job_sequence), self.runs)

    def to_json(self) -> bytes:
        told: dict[str, Any] = {
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
        return json.dumps(told).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Course:
        told = json.loads(data)
        return cls(
            offset=int(told["offset"]),
            producer=UUID(told["producer"]) if told["producer"] else None,
            sequence=int(told["sequence"]),
            job_sequence=int(told["job_sequence"]),
            time=None if told["time"] is None else moment_of(told["time"]),
            application=str(told["application"]),
            runs={UUID(each["run"]): _job(each) for each in told["runs"]},
            is_closed=bool(told["is_closed"]),
            is_certain=bool(told["is_certain"]),
        )


def write_course(files: Files, directory: Path, data: bytes, *, durable: bool) -> None:
    replace_file(files, directory / _FILE, data, durable=durable)


def read_course(files: Files, directory: Path) -> Course | None:
    """The course that was noted, or None where none was, or it can't be read any more."""
    try:
        data = read_file(files, directory / _FILE, _LARGEST)
        return None if data is None else Course.from_json(data)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_course_damaged(files: Files, directory: Path) -> bool:
    """Whether a course was noted there and can't be read: of its runs nobody can say then that they were killed."""
    return (directory / _FILE).exists() and read_course(files, directory) is None


def _job(told: dict[str, str | None]) -> JobName | None:
    return JobName(namespace=told["namespace"], name=told["job"]) if told["job"] else None
