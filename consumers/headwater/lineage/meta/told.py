"""Calls become events: a replay would bring back what was deleted otherwise, and forget what was stored."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from headwater.events.administration import LineageDeleted, LineageScope
from headwater.events.envelope import Event
from headwater.events.fingerprints import fingerprint_of
from headwater.events.jobs import Committed, Input, JobLineage, Output, ShapedSink, ShapedSource
from headwater.events.names import JobName, TableName
from headwater.lineage.entities import DataLineage, TableLineage

BY_CALL: Final = UUID("68656164-7761-8465-8220-63616c6c6564")
"""The incarnation of barriers that are stored by calls: sources and sinks of one barrier come from different processes,
and are to be one commit."""


def source_table(entity: TableLineage, catalog: str) -> Event:
    inputs = (ShapedSource(dataset=None, table=_table(entity, catalog)),)
    return JobLineage(job=_job(entity.job), fingerprint=fingerprint_of(inputs, ()), inputs=inputs, outputs=())


def sink_table(entity: TableLineage, catalog: str) -> Event:
    outputs = (ShapedSink(dataset=None, table=_table(entity, catalog)),)
    return JobLineage(job=_job(entity.job), fingerprint=fingerprint_of((), outputs), outputs=outputs)


def source_data(entity: DataLineage, catalog: str) -> Event:
    source = Input(dataset=None, table=_table(entity, catalog), snapshot=entity.snapshot_id)
    return Committed(job=_job(entity.job), barrier=entity.barrier_id, incarnation=BY_CALL, inputs=(source,))


def sink_data(entity: DataLineage, catalog: str) -> Event:
    output = Output(dataset=None, table=_table(entity, catalog), snapshot=entity.snapshot_id)
    return Committed(job=_job(entity.job), barrier=entity.barrier_id, incarnation=BY_CALL, outputs=(output,))


def deletion(job: str, scope: LineageScope, before: datetime) -> Event:
    return LineageDeleted(of_job=_job(job), scope=scope, before=before)


def _job(name: str) -> JobName:
    return JobName(name=name)


def _table(entity: TableLineage, catalog: str) -> TableName:
    return TableName(catalog=catalog, database=entity.database, table=entity.table)
