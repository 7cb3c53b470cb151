"""What is reported for a producer that died, by whoever finds its spool: the same events, whoever does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from headwater.events.envelope import Event
from headwater.events.jobs import JobStatus, JobStatusChanged
from headwater.events.names import JobName


class ProducerTail(NamedTuple):
    """The end of what a dead producer reported: its last event, and how many it reported of the job family."""

    event: Event
    job_sequence: int


def inferred_ends(last: ProducerTail, runs: Mapping[UUID, JobName | None]) -> tuple[JobStatusChanged, ...]:
    """A KILLED for each run that had no terminal status, in the order of their ids.

    They have the dead producer's identity, the sequences after its last one and its last time. So several shippers
    make the same events, and a status that the run did tell, in an event that was lost here, beats them.
    """
    return tuple(
        JobStatusChanged(
            producer=last.event.producer,
            sequence=last.event.sequence + ahead,
            family_sequence=last.job_sequence + ahead,
            time=last.event.time,
            application=last.event.application,
            job=runs[run],
            run=run,
            status=JobStatus.KILLED,
            inferred=True,
        )
        for ahead, run in enumerate(sorted(runs), 1)
    )
