"""Maps events to calls of `LineageMeta`, Paimon PIP-5's interface: which job reads and writes which tables, which
snapshots a barrier read and wrote, and that a job's table lineage was deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from headwater.events.administration import LineageDeleted, LineageScope
from headwater.events.clock import micros_of, moment_of
from headwater.events.envelope import Event
from headwater.events.jobs import CommitKind, Committed, DatasetRef, Input, JobLineage, Output
from headwater.lineage.api import DataLineage, LineageMeta, TableLineage
from headwater.lineage.mapping.row_builder import cap_time, clean_text, job_name_key, qualified_job_name

StoreCall: TypeAlias = Callable[[LineageMeta], None]
_SOURCES: Final = frozenset({LineageScope.SOURCE_TABLES, LineageScope.TABLES, LineageScope.ALL})
_SINKS: Final = frozenset({LineageScope.SINK_TABLES, LineageScope.TABLES, LineageScope.ALL})


def map_to_calls(event: Event, append_time: int | None = None) -> Iterator[StoreCall]:
    """Yield the calls for an event, in order. Nothing for what the interface can't express."""
    if isinstance(event, LineageDeleted):
        yield from _deletions(event)
    elif isinstance(event, (Committed, JobLineage)) and event.job is not None:
        time = cap_time(micros_of(event.time), append_time)
        namespace, name = job_name_key(event.job)
        yield from _map_facts(event, qualified_job_name(str(namespace), str(name)), time)


def _map_facts(event: Committed | JobLineage, job: str, time: int) -> Iterator[StoreCall]:
    for source in event.inputs:
        yield from _table(source, job, time, _source_table)
    for sink in event.outputs:
        yield from _table(sink, job, time, _sink_table)
    if isinstance(event, Committed):
        for place in event.inputs:
            yield from _data(place, event, job, time, _source_data)
        for output in _data_last(event.outputs):
            yield from _data(output, event, job, time, _sink_data)


def _table(place: DatasetRef, job: str, time: int, call_of: Callable[[TableLineage], StoreCall]) -> Iterator[StoreCall]:
    if place.table is not None:
        database, table = clean_text(place.table.database) or "", clean_text(place.table.table)
        yield call_of(TableLineage(job=job, database=database, table=table, create_time=moment_of(time)))


def _data(
    place: Input | Output, event: Committed, job: str, time: int, call_of: Callable[[DataLineage], StoreCall]
) -> Iterator[StoreCall]:
    """Yield the call for a snapshot of the main branch; the interface has no place for other branches and versions."""
    if place.table is None or place.snapshot is None or not place.main:
        return
    database, table = clean_text(place.table.database) or "", clean_text(place.table.table)
    yield call_of(
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
    """Sort outputs, so that the last call for a table is the one that counts: new data rather than a compaction."""
    return sorted(outputs, key=lambda each: (each.commit_kind is not CommitKind.COMPACT, each.snapshot or 0))


def _deletions(event: LineageDeleted) -> Iterator[StoreCall]:
    """Yield deletions of all of a job's lineage. The interface can't express less, and deleting more would be wrong."""
    narrower = (event.of_run, event.dataset, event.generation, event.up_to_snapshot, event.catalog)
    if event.of_job is None or event.steps or any(each is not None for each in narrower):
        return
    namespace, name = job_name_key(event.of_job)
    job = qualified_job_name(str(namespace), str(name))
    if event.scope in _SOURCES:
        yield lambda store: store.delete_source_table_lineage(job)
    if event.scope in _SINKS:
        yield lambda store: store.delete_sink_table_lineage(job)


def _source_table(entity: TableLineage) -> StoreCall:
    return lambda store: store.store_source_table_lineage(entity)


def _sink_table(entity: TableLineage) -> StoreCall:
    return lambda store: store.store_sink_table_lineage(entity)


def _source_data(entity: DataLineage) -> StoreCall:
    return lambda store: store.store_source_data_lineage(entity)


def _sink_data(entity: DataLineage) -> StoreCall:
    return lambda store: store.store_sink_data_lineage(entity)
