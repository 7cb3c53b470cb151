"""Events as a platform of some hundred jobs tells them: 70 % commits of two inputs and one output, 10 % shapes of 20
columns drawn from 2,000 fingerprints, 10 % changes of catalogs, 10 % statuses of runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from hashlib import blake2b
from random import Random
from typing import Final
from uuid import UUID

from headwater.events import (
    AlterTable,
    ColumnLineage,
    Committed,
    DatasetId,
    Event,
    Format,
    Input,
    JobLineage,
    JobName,
    JobStatusChanged,
    Output,
    TableName,
)
from headwater.events.changes import SetProperty
from headwater.events.column_lineage import Derivation
from headwater.events.jobs import CommitKind, JobStatus, OverwriteScope, ReadMode, SinkSchema, SourceSchema
from headwater.events.tables import Column
from headwater.testing.examples import CONTEXT

JOBS: Final = 300
SHAPES: Final = 2_000
COLUMNS: Final = 20
RUN: Final = 10_000
"""So many events further each job is in its next run, after some two dozen commits."""
BEGAN: Final = datetime(2026, 3, 1, tzinfo=timezone.utc)


def events(count: int, *, seed: int = 7, shapes: int = SHAPES) -> Iterator[Event]:
    """Of one producer. `shapes=0`: every fingerprint is new."""
    random, producer, families = Random(seed), UUID(int=seed), {"JOB": 0, "CATALOG": 0}
    for number in range(1, count + 1):
        event = _draft(random, number, shapes)
        family = event.family.value
        families[family] += 1
        yield event.model_copy(
            update={
                "producer": producer,
                "sequence": number,
                "family_sequence": families[family],
                "time": BEGAN + timedelta(milliseconds=number),
                "application": "application_1700000000000_0001",
            }
        )


def _draft(random: Random, number: int, shapes: int) -> Event:
    kind, job = random.random(), random.randrange(JOBS)
    if kind < 0.7:
        return _commit(job, number)
    if kind < 0.8:
        shape = random.randrange(shapes) if shapes else number
        return _shape(shape % JOBS, shape)
    if kind < 0.9:
        return _change(job, number)
    status = random.choice((JobStatus.RUNNING, JobStatus.FINISHED))
    return JobStatusChanged(job=_job(job), run=_run(job, number // RUN), status=status)


def _commit(job: int, number: int) -> Committed:
    sources = tuple(_read(each, number) for each in _sources(job))
    name = f"daily_{job}"
    output = Output(
        dataset=_dataset(name),
        table=_table(name),
        generation=UUID(int=10_000 + job),
        format=Format.ICEBERG,
        snapshot=(number << 20) + job,
        parent=(number - 1 << 20) + job,
        schema_id=1,
        commit_kind=CommitKind.APPEND,
        replaced=OverwriteScope.NOTHING,
        made_from=(0, 1),
        rows=number,
        bytes=100 * number,
    )
    return Committed(
        job=_job(job),
        run=_run(job, number // RUN),
        barrier=(1_772_323_200_000 + number << 20) + 5,
        fingerprint=_fingerprint(job),
        statement=number,
        inputs=sources,
        outputs=(output,),
    )


def _read(table: int, number: int) -> Input:
    name = f"raw_{table}"
    return Input(
        dataset=_dataset(name),
        table=_table(name),
        generation=UUID(int=20_000 + table),
        format=Format.DELTA,
        mode=ReadMode.STATE,
        snapshot=number // 7,
        rows=number,
        bytes=100 * number,
    )


def _shape(job: int, shape: int) -> JobLineage:
    columns = tuple(
        ColumnLineage(
            output=0,
            input=at % 2,
            source=(f"column_{at}",),
            target=(f"column_{at}",),
            derivation=Derivation.TRANSFORMATION,
            expression=f"upper(column_{at}) || ?",
        )
        for at in range(COLUMNS)
    )
    more_columns = tuple(Column(name=f"column_{at}", type='"string"') for at in range(COLUMNS))
    sources = tuple(
        SourceSchema(
            dataset=_dataset(f"raw_{each}"), table=_table(f"raw_{each}"), format=Format.DELTA, columns=more_columns
        )
        for each in _sources(job)
    )
    name = f"daily_{job}"
    sink = SinkSchema(dataset=_dataset(name), table=_table(name), format=Format.ICEBERG, columns=more_columns)
    return JobLineage(job=_job(job), fingerprint=_fingerprint(shape), inputs=sources, outputs=(sink,), columns=columns)


def _change(job: int, number: int) -> AlterTable:
    name = f"daily_{job}"
    return AlterTable(
        context=CONTEXT,
        identifier=_table(name),
        dataset=_dataset(name),
        generation=UUID(int=10_000 + job),
        format=Format.ICEBERG,
        schema_id=number,
        changes=(SetProperty(key="owner", value=f"team_{number}"),),
    )


def _sources(job: int) -> tuple[int, int]:
    return (job * 7 % JOBS, job * 11 % JOBS + JOBS)


def _job(job: int) -> JobName:
    return JobName(name=f"etl_{job}")


def _run(job: int, day: int) -> UUID:
    return UUID(int=(day << 32) + job + 1)


def _fingerprint(shape: int) -> bytes:
    return blake2b(b"%d" % shape, digest_size=16).digest()


def _dataset(name: str) -> DatasetId:
    return DatasetId(namespace="s3://acme-lake-prod", name=f"warehouse/sales/{name}")


def _table(name: str) -> TableName:
    return TableName(catalog="lake", database="sales", table=name)
