"""What events about jobs and runs tell, and the shapes of writes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch
from hashlib import blake2b
from typing import Any, Final

from headwater.events.jobs import (
    Committed,
    JobEvent,
    JobLineage,
    JobStarted,
    JobStatusChanged,
    OnJobEnd,
    RunScope,
    ShapedSink,
    ShapedSource,
    StatementFailed,
)
from headwater.lineage.law.commits import SINK, SOURCE, of_commit, table_lineage
from headwater.lineage.law.telling import (
    Telling,
    clean,
    dataset_hash,
    id_of,
    job_of,
    json_of,
    life_of,
    name_of,
)
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.kinds import Row, Told
from headwater.lineage.rows.values import HASH_BYTES, Value, encoded

CONFIGURATION: Final = "CONFIGURATION"
TAG: Final = "TAG"
_SHAPE: Final = ("columns", "partitioning", "primary_key", "watermarks", "options")
_DELETED_AT_END: Final = {OnJobEnd.DELETE_TABLE: ("TABLES",), OnJobEnd.DELETE_ALL: ("TABLES", "DATA")}
_CONTENT: Final = {"inputs", "outputs", "columns"}
_NO_CONTENT: Final = {"inputs": {"__all__": {"life"}}, "outputs": {"__all__": {"life"}}}
"""A table that is made anew by each run has one shape in all of them."""
_BEFORE_TERMINAL, _INFERRED, _TOLD = 0, 1, 2


@singledispatch
def of_job(event: JobEvent, tell: Telling) -> Iterator[Row]:
    """Events of the family that tell no more than that their job is there."""
    yield from _job(event, tell)


def _job(event: JobEvent, tell: Telling) -> Iterator[Row]:
    if event.job is not None:
        yield tell.seen(t.JOB, *job_of(event.job))


of_job.register(Committed)(of_commit)


@of_job.register
def _of_start(event: JobStarted, tell: Telling) -> Iterator[Row]:
    parent = job_of(event.parent_job)
    if event.scope is RunScope.APPLICATION:  # one that dies before its first heartbeat is missed all the same
        whose = (clean(event.application), *job_of(event.job), id_of(event.run))
        yield tell.seen(t.PRODUCER, tell.producer, beat=(*whose, tell.sequence, None, None))
    if event.job is not None:
        yield tell.seen(t.JOB, *job_of(event.job), about=(event.job_type.value, *parent))
    if event.run is None:
        return
    run = event.run.bytes
    start = (
        *job_of(event.job),
        *parent,
        clean(event.application),
        event.scope.value,
        event.job_type.value,
        clean(event.user),
        clean(event.code_version),
        clean(event.headwater_version),
        id_of(event.parent_run),
        tell.time,
        json_of(event.spark),
        json_of(event.stream),
        json_of(event.parent),
    )
    yield tell.seen(t.RUN, run, start=start)
    for section, settings in ((CONFIGURATION, event.configuration), (TAG, event.tags)):
        for name, value in settings.items():
            yield tell.seen(t.RUN_SETTING, run, section, clean(name), content=(clean(value),))
    for each in event.starts_at:
        yield from tell.place(each)
        key = (run, dataset_hash(each.dataset), life_of(each.life), clean(each.branch), *name_of(each.table))
        yield tell.seen(t.RUN_START, *key, place=(each.snapshot, clean(each.version), each.reason.value))


@of_job.register
def _of_status(event: JobStatusChanged, tell: Telling) -> Iterator[Row]:
    """A terminal status beats RUNNING, and one that the run told itself beats one that somebody inferred."""
    yield from _job(event, tell)
    if event.run is None:
        return
    rank = (_INFERRED if event.inferred else _TOLD) if event.status.is_terminal else _BEFORE_TERMINAL
    values = (
        event.status.value,
        int(event.inferred),
        tell.time,
        event.exit_code,
        event.signal,
        json_of(event.error),
        event.on_job_end.value if event.on_job_end else None,
    )
    row = tell.seen(t.RUN, event.run.bytes)
    yield row._replace(groups=(None, Told(tell.stamp(rank), values)))
    if event.status.is_terminal and event.on_job_end is not None:
        for scope in _DELETED_AT_END.get(event.on_job_end, ()):
            key = (scope, None, None, 0, event.run.bytes, None, None, None, None)
            yield tell.gone(t.TOMBSTONE, *key)


@of_job.register
def _of_failure(event: StatementFailed, tell: Telling) -> Iterator[Row]:
    yield from _job(event, tell)
    for place in (*event.inputs, *event.outputs):
        yield from tell.place(place)
    fixed = (
        *job_of(event.job),
        *job_of(event.parent_job),
        id_of(event.run),
        id_of(event.incarnation),
        tell.time,
        event.statement,
        event.batch_id,
        json_of(event.error),
        json_of(event.inputs),
        json_of(event.outputs),
        clean(event.sql),
    )
    yield tell.fixed(t.FAILURE, (tell.producer, tell.sequence), fixed)


@of_job.register
def _of_lineage(event: JobLineage, tell: Telling) -> Iterator[Row]:
    yield from _job(event, tell)
    for each in event.catalogs:
        yield from tell.catalog(each.name, each.id)
    shape = (event.fingerprint, _variant(event))
    yield tell.seen(t.SHAPE, *shape, first=(*job_of(event.job), clean(event.sql)))
    number = event.part.number if event.part else 1
    sides: dict[str, tuple[ShapedSource | ShapedSink, ...]] = {SOURCE: event.inputs, SINK: event.outputs}
    for side, places in sides.items():
        for position, place in enumerate(places):
            yield from tell.place(place)
            yield tell.fixed(t.SHAPE_SIDE, (*shape, number, side, position), _side(place))
            yield from table_lineage(side, place, event, tell)
    for edge in event.columns:
        source, target = json_of(edge.source), json_of(edge.target)
        key = (edge.output, edge.input, source, target, edge.derivation.value, clean(edge.expression))
        yield tell.fixed(t.SHAPE_COLUMN, (*shape, *key))


def _side(place: ShapedSource | ShapedSink) -> tuple[Value, ...]:
    detail = {name: value for name in _SHAPE if (value := getattr(place, name))}
    where = (dataset_hash(place.dataset), *name_of(place.table), place.format.value)
    return (*where, clean(place.branch), clean(place.opaque), json_of(_plain(detail)))


def _plain(detail: dict[str, Any]) -> dict[str, Any]:
    return {name: dict(value) if hasattr(value, "items") else value for name, value in detail.items()}


def _variant(event: JobLineage) -> bytes:
    """By content, so that telling it again is no news; of parts, which don't know each other's, by the event."""
    if event.part is not None:
        key: tuple[Value, ...] = (event.producer.bytes, event.sequence - event.part.number + 1)
        return blake2b(encoded(key), digest_size=HASH_BYTES).digest()
    content = event.model_dump_json(include=_CONTENT, exclude=_NO_CONTENT)
    return blake2b(content.encode("utf-8", "replace"), digest_size=HASH_BYTES).digest()
