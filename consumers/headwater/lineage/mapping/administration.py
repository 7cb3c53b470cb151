"""Rows of administration events, and of what headwater reports about itself: gaps, heartbeats, ends of producers."""

from __future__ import annotations

from functools import singledispatch
from typing import Final

from headwater.events.administration import Administration, CatalogOptionsDeclared, DatasetsUnified, LineageDeleted
from headwater.events.clock import micros_of
from headwater.events.health import Closed, Gap, Heartbeat
from headwater.events.jobs import JobEvent
from headwater.lineage.mapping.jobs import map_job_event
from headwater.lineage.mapping.keys import (
    catalog_hash,
    clean_text,
    dataset_hash,
    generation_text,
    job_name_key,
    to_json_text,
    uuid_bytes,
)
from headwater.lineage.mapping.row_builder import RowBuilder
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.values import Value

UNIFIED: Final = "UNIFIED"
_BOUNDS: Final = frozenset(Gap.model_fields) - frozenset(JobEvent.model_fields) - {"reason", "detail"}


@singledispatch
def map_administration(_: Administration, __: RowBuilder) -> None:
    """Kinds that change no rows."""


@map_administration.register
def _of_deletion(event: LineageDeleted, build: RowBuilder) -> None:
    key = (
        event.scope.value,
        *job_name_key(event.of_job),
        int(event.steps),
        uuid_bytes(event.of_run),
        dataset_hash(event.dataset),
        generation_text(event.generation),
        event.up_to_snapshot,
        catalog_hash(event.catalog),
    )
    if event.dataset is not None:
        build.dataset(event.dataset)
    build.deleted(t.TOMBSTONE, key, micros_of(event.before))


@map_administration.register
def _of_options(event: CatalogOptionsDeclared, build: RowBuilder) -> None:
    context = event.context
    build.catalog(context.name, context.id)
    switches = {"table-lineage": event.table_lineage, "data-lineage": event.data_lineage}
    declared = {**event.options, **{name: str(value).lower() for name, value in switches.items()}}
    for name, value in declared.items():
        key = (catalog_hash(context.id), clean_text(context.name), clean_text(name), clean_text(value))
        build.observed(t.CATALOG_OPTION, key)


@map_administration.register
def _of_unification(event: DatasetsUnified, build: RowBuilder) -> None:
    build.dataset(event.dataset)
    for other in event.others:
        build.dataset(other)
        if other != event.dataset:
            build.observed(t.DATASET_LINK, (dataset_hash(other), dataset_hash(event.dataset), UNIFIED))


@map_job_event.register
def _of_gap(event: Gap, build: RowBuilder) -> None:
    dataset = event.source.dataset if event.source else None
    if event.source is not None:
        build.place(event.source)
    bounds = event.model_dump(mode="json", include=set(_BOUNDS), exclude_none=True)
    values = (
        *job_name_key(event.job),
        uuid_bytes(event.run),
        dataset_hash(dataset),
        build.time,
        event.reason.value,
        clean_text(event.detail),
        to_json_text(bounds),
    )
    build.observed(t.GAP, (build.producer, build.sequence), event=values)


@map_job_event.register
def _of_heartbeat(event: Heartbeat, build: RowBuilder) -> None:
    build.observed(t.PRODUCER, (build.producer,), heartbeat=_beat(event, build, event.interval))


@map_job_event.register
def _of_closing(event: Closed, build: RowBuilder) -> None:
    beat = _beat(event, build, None)
    build.observed(t.PRODUCER, (build.producer,), heartbeat=beat, closing=(build.time, int(event.complete)))


def _beat(event: Heartbeat | Closed, build: RowBuilder, interval: int | None) -> tuple[Value, ...]:
    origin = (clean_text(event.application), *job_name_key(event.job), uuid_bytes(event.run))
    return (*origin, build.sequence, interval, to_json_text(dict(event.dropped)))
