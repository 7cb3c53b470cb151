"""Drafts of several jobs and tables without end, out of a seed: each is marked with its number."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from headwater.events import AlterTable, Committed, CreateTable, Heartbeat, JobStarted
from headwater.events.base import StringMap
from headwater.events.envelope import Event
from headwater.events.jobs import JobType
from headwater.events.names import DatasetId, JobName
from headwater.testing.examples import DRAFTS

JOBS = tuple(JobName(namespace=namespace, name=name) for namespace in ("prod", "test") for name in ("orders", "clicks"))
TABLES = tuple(DatasetId(namespace="s3://lake", name=f"sales/{name}") for name in ("orders", "größe", "x" * 600))
_LARGE = 300
_CREATED, _ALTERED, _COMMITTED = (
    next(each for each in DRAFTS if type(each) is kind) for kind in (CreateTable, AlterTable, Committed)
)


def many_drafts(random: Random, *, large: bool = True) -> Iterator[Event]:
    """Some have hundreds of kilobytes, unless none is to be `large`."""
    number = 0
    while True:
        number += 1
        draft = _large(random) if large and random.randrange(_LARGE) == 0 else _small(random)
        yield draft.model_copy(update={"user": f"number {number}"})


def _small(random: Random) -> Event:
    kind = random.choices((_COMMITTED, _ALTERED, _CREATED, JobStarted, Heartbeat), (8, 2, 1, 1, 1))[0]
    if kind is Heartbeat:
        return Heartbeat()
    if kind is JobStarted:
        return JobStarted(job_type=JobType.BATCH, job=random.choice(JOBS), configuration=_conf(random.randrange(20)))
    assert isinstance(kind, Event)
    update = {"job": random.choice(JOBS)} if kind is _COMMITTED else {"dataset": random.choice(TABLES)}
    return kind.model_copy(update=update)


def _large(random: Random) -> Event:
    return JobStarted(job_type=JobType.BATCH, job=random.choice(JOBS), configuration=_conf(random.randrange(300, 700)))


def _conf(count: int) -> StringMap:
    return StringMap({f"spark.sales.{each}": f"{each}" * 300 for each in range(count)})
