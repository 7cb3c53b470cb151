"""A driver that tells events until it is killed: a program of test_bus_kills.

Usage: python -m tests.kit.bus.victim SPOOLS DIRECTORY DELIVERED. DIRECTORY/told gets a line for each event once it
was reported, DIRECTORY/arrived one for each that its listener dealt with: the first DELIVERED, then its target is away.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from uuid import UUID

from headwater.errors import TransientError
from headwater.events import Heartbeat, JobStarted, JobStatusChanged
from headwater.events.envelope import Event
from headwater.events.jobs import JobStatus, JobType
from headwater.events.names import JobName
from headwater.listeners.bus import Bus, BusOptions
from headwater.spi import Application, ListenerContext, RecordBatch, SpoolPosition

OPEN = {UUID(int=3): JobName(name="orders"), UUID(int=1): JobName(namespace="prod", name="clicks")}
"""The runs that begin and don't end."""
ENDED = UUID(int=2)
PACE = 100


class Notebook:
    """Lines that are past all buffers when `note` comes back."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, what: object) -> None:
        os.write(self._descriptor, f"{what}\n".encode())


class NotingFactory:
    """Durable listeners that write down what they deal with, until their target is away."""

    def create(self, context: ListenerContext) -> Noting:
        return Noting(Notebook(Path(context.configuration["file"])), int(context.configuration["delivered"]))


class Noting:
    def __init__(self, notebook: Notebook, delivered: int) -> None:
        self._notebook = notebook
        self._left = delivered
        self._answer: SpoolPosition | None = None

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        for record in batch:
            if not self._left:
                raise TransientError("the target is away")
            self._notebook.note(record.event_id)
            self._left -= 1
            self._answer = record.position
        return self._answer

    def flush(self, timeout: float) -> SpoolPosition | None:
        return self._answer

    def close(self, timeout: float) -> bool:
        return self._left > 0


def drafts() -> list[Event]:
    """Three runs, one of which ends."""
    begun = [
        JobStarted(job_type=JobType.BATCH, run=run, job=job)
        for run, job in {**OPEN, ENDED: JobName(name="done")}.items()
    ]
    return [*begun, JobStatusChanged(run=ENDED, status=JobStatus.FINISHED)]


def main(spools: str, directory: str, delivered: str) -> None:
    emitted = Notebook(Path(directory, "told"))
    prefix = "spark.headwater."
    configuration = {
        f"{prefix}spool.dir": spools,
        f"{prefix}spool.max.bytes": str(1 << 20),
        f"{prefix}listeners": f"noting={__spec__.name}:NotingFactory",
        f"{prefix}noting.file": str(Path(directory, "arrived")),
        f"{prefix}noting.delivered": delivered,
    }
    options = BusOptions(batch_count=20, commit_interval=0.0, keep_interval=0.01)
    bus = Bus.open(configuration, Application("application_7", "victim"), options=options)
    for event in drafts():
        emitted.note(bus.emit(event)[0].event_id)
    while True:
        for _ in range(PACE):
            emitted.note(bus.emit(Heartbeat())[0].event_id)
        bus.flush(1 if int(delivered) > PACE else 0)  # nothing but the kill is to cost anything: no limit is to be met


if __name__ == "__main__":
    main(*sys.argv[1:])
