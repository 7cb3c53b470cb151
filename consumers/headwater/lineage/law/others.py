"""What administration tells, and what headwater tells of itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch
from typing import Final

from headwater.events.administration import Administration, CatalogOptionsDeclared, DatasetsUnified, LineageDeleted
from headwater.events.clock import micros_of
from headwater.events.health import Closed, Gap, Heartbeat
from headwater.events.jobs import JobEvent
from headwater.lineage.law.jobs import of_job
from headwater.lineage.law.telling import (
    Telling,
    catalog_hash,
    clean,
    dataset_hash,
    id_of,
    job_of,
    json_of,
    life_of,
)
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.kinds import Row
from headwater.lineage.rows.values import Value

UNIFIED: Final = "UNIFIED"
_BOUNDS: Final = frozenset(Gap.model_fields) - frozenset(JobEvent.model_fields) - {"reason", "detail"}


@singledispatch
def of_administration(_: Administration, __: Telling) -> Iterator[Row]:
    """Kinds that change no rows."""
    yield from ()


@of_administration.register
def _of_deletion(event: LineageDeleted, tell: Telling) -> Iterator[Row]:
    key = (
        event.scope.value,
        *job_of(event.of_job),
        int(event.steps),
        id_of(event.of_run),
        dataset_hash(event.dataset),
        life_of(event.life),
        event.up_to_snapshot,
        catalog_hash(event.catalog),
    )
    if event.dataset is not None:
        yield from tell.dataset(event.dataset)
    yield tell.gone(t.TOMBSTONE, *key, at=micros_of(event.before))


@of_administration.register
def _of_options(event: CatalogOptionsDeclared, tell: Telling) -> Iterator[Row]:
    context = event.context
    yield from tell.catalog(context.name, context.id)
    switches = {"table-lineage": event.table_lineage, "data-lineage": event.data_lineage}
    told = {**event.options, **{name: str(value).lower() for name, value in switches.items()}}
    for name, value in told.items():
        yield tell.seen(t.CATALOG_OPTION, catalog_hash(context.id), clean(context.name), clean(name), clean(value))


@of_administration.register
def _of_unification(event: DatasetsUnified, tell: Telling) -> Iterator[Row]:
    yield from tell.dataset(event.dataset)
    for other in event.others:
        yield from tell.dataset(other)
        if other != event.dataset:
            yield tell.seen(t.LINK, dataset_hash(other), dataset_hash(event.dataset), UNIFIED)


@of_job.register
def _of_gap(event: Gap, tell: Telling) -> Iterator[Row]:
    dataset = event.source.dataset if event.source else None
    if event.source is not None:
        yield from tell.place(event.source)
    bounds = event.model_dump(mode="json", include=set(_BOUNDS), exclude_none=True)
    fixed = (
        *job_of(event.job),
        id_of(event.run),
        dataset_hash(dataset),
        tell.time,
        event.reason.value,
        clean(event.detail),
        json_of(bounds),
    )
    yield tell.fixed(t.GAP, (tell.producer, tell.sequence), fixed)


@of_job.register
def _of_heartbeat(event: Heartbeat, tell: Telling) -> Iterator[Row]:
    yield tell.seen(t.PRODUCER, tell.producer, beat=_beat(event, tell, event.interval))


@of_job.register
def _of_closing(event: Closed, tell: Telling) -> Iterator[Row]:
    beat = _beat(event, tell, None)
    yield tell.seen(t.PRODUCER, tell.producer, beat=beat, closing=(tell.time, int(event.complete)))


def _beat(event: Heartbeat | Closed, tell: Telling, interval: int | None) -> tuple[Value, ...]:
    whose = (clean(event.application), *job_of(event.job), id_of(event.run))
    return (*whose, tell.sequence, interval, json_of(dict(event.dropped)))
