"""Whoever finds a dead driver's spool tells the same end of its runs."""

from __future__ import annotations

from uuid import UUID

from headwater.events import Heartbeat, JobName
from headwater.events.avro import Codec
from headwater.events.clock import uuid7
from headwater.events.jobs import JobStatus
from headwater.events.producer import ProducerTail, inferred_ends

LAST = ProducerTail(Heartbeat(producer=uuid7(), sequence=41, family_sequence=30, application="app"), job_sequence=30)
RUNS: dict[UUID, JobName | None] = {uuid7(): JobName(name="etl"), uuid7(): None, uuid7(): JobName(name="clicks")}


def test_each_run_is_killed_after_the_last_event_of_its_producer() -> None:
    ends = inferred_ends(LAST, RUNS)
    assert [(e.sequence, e.family_sequence) for e in ends] == [(42, 31), (43, 32), (44, 33)]
    assert {(e.producer, e.time, e.application) for e in ends} == {(LAST.event.producer, LAST.event.time, "app")}
    assert {(e.status, e.inferred) for e in ends} == {(JobStatus.KILLED, True)}
    assert {e.run: e.job for e in ends} == RUNS


def test_every_shipper_makes_the_same_bytes() -> None:
    encode = Codec().encode
    again = inferred_ends(LAST, dict(reversed(RUNS.items())))
    assert [encode(e) for e in again] == [encode(e) for e in inferred_ends(LAST, RUNS)]
