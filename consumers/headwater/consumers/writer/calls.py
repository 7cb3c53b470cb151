"""What of an event can be said by the methods of the store's first interface, Paimon PIP-5's: which job reads and
writes which tables, which snapshots a barrier of a job read and made, and that a job's table lineage was deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from headwater.events.administration import LineageDeleted, LineageScope
from headwater.events.clock import micros_of, moment_of
from headwater.events.envelope import Event
from headwater.events.jobs import CommitKind, Committed, Input, JobLineage, Output, Place
from headwater.lineage.api import LineageMeta
from headwater.lineage.entities import DataLineage, TableLineage
from headwater.lineage.law.telling import capped, clean, job_of, job_text

Call: TypeAlias = Callable[[LineageMeta], None]
_SOURCES: Final = frozenset({LineageScope.SOURCE_TABLES, LineageScope.TABLES, LineageScope.ALL})
_SINKS: Final = frozenset({LineageScope.SINK_TABLES, LineageScope.TABLES, LineageScope.ALL})


def calls(event: Event, appended: int | None = None) -> Iterator[Call]:
    """In their order. Nothing for what the interface has no word for."""
    if isinstance(event, LineageDeleted):
        yield from _deletions(event)
    elif isinstance(event, (Committed, JobLineage)) and event.job is not None:
        time = capped(micros_of(event.time), appended)
        namespace, name = job_of(event.job)
        yield from _told(event, job_text(str(namespace), str(name)), time)


def _told(event: Committed | JobLineage, job: str, time: int) -> Iterator[Call]:
    for source in event.inputs:
        yield from _table(source, job, time, _source_table)
    for sink in event.outputs:
        yield from _table(sink, job, time, _sink_table)
    if isinstance(event, Committed):
        for place in event.inputs:
            yield from _data(place, event, job, time, _source_data)
        for output in _data_last(event.outputs):
            yield from _data(output, event, job, time, _sink_data)


def _table(place: Place, job: str, time: int, tell: Callable[[TableLineage], Call]) -> Iterator[Call]:
    if place.table is not None:
        database, table = clean(place.table.database) or "", clean(place.table.table)
        yield tell(TableLineage(job=job, database=database, table=table, create_time=moment_of(time)))


def _data(
    place: Input | Output, event: Committed, job: str, time: int, tell: Callable[[DataLineage], Call]
) -> Iterator[Call]:
    """Of the main branch, with a snapshot that is a number: the interface has no place for others."""
    if place.table is None or place.snapshot is None or not place.main:
        return
    database, table = clean(place.table.database) or "", clean(place.table.table)
    yield tell(
        DataLineage(
            job=job,
            database=database,
            table=table,
            create_time=moment_of(time),
            barrier_id=event.barrier,
            snapshot_id=place.snapshot,
        )
    )


def _data_last(outputs: Sequence[Output]) -> list[Output]:
    """A barrier has one snapshot of a table there, the one told last: new data rather than what only compacts them."""
    return sorted(outputs, key=lambda each: (each.commit_kind is not CommitKind.COMPACT, each.snapshot or 0))


def _deletions(event: LineageDeleted) -> Iterator[Call]:
    """Of all of a job's: the interface can't say less, and deleting more than was told would be wrong."""
    narrower = (event.of_run, event.dataset, event.life, event.up_to_snapshot, event.catalog)
    if event.of_job is None or event.steps or any(each is not None for each in narrower):
        return
    namespace, name = job_of(event.of_job)
    job = job_text(str(namespace), str(name))
    if event.scope in _SOURCES:
        yield lambda store: store.delete_source_table_lineage(job)
    if event.scope in _SINKS:
        yield lambda store: store.delete_sink_table_lineage(job)


def _source_table(entity: TableLineage) -> Call:
    return lambda store: store.store_source_table_lineage(entity)


def _sink_table(entity: TableLineage) -> Call:
    return lambda store: store.store_sink_table_lineage(entity)


def _source_data(entity: DataLineage) -> Call:
    return lambda store: store.store_source_data_lineage(entity)


def _sink_data(entity: DataLineage) -> Call:
    return lambda store: store.store_sink_data_lineage(entity)
