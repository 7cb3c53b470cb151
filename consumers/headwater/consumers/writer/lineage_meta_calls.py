"""Maps events to calls of `LineageMeta`, Paimon PIP-5's interface: which job reads and writes which tables, which
snapshots a barrier read and wrote, and that a job's lineage was deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeAlias

from headwater.events.administration import LineageDeleted, LineageScope
from headwater.events.clock import micros_of, moment_of
from headwater.events.envelope import Event
from headwater.events.jobs import (
    CommitKind,
    Committed,
    DatasetRef,
    Input,
    JobLineage,
    JobStatusChanged,
    LineageRetention,
    Output,
)
from headwater.events.names import JobName, TableName
from headwater.lineage.api import DataLineage, DeletesDataLineage, LineageMeta, TableLineage
from headwater.lineage.mapping.keys import clean_text, job_name_key, qualified_job_name
from headwater.lineage.mapping.row_builder import cap_time
from headwater.lineage.predicates import where

StoreCall: TypeAlias = Callable[[LineageMeta], None]
_LOG: Final = logging.getLogger(__name__)
_CONFIRMING: Final = timedelta(minutes=5)
"""What a deletion "until now" is older than its event at most: somebody had to confirm it."""
_DATA: Final = frozenset({LineageScope.DATA, LineageScope.ALL})
_DELETED_AT_END: Final = {
    LineageRetention.DELETE_TABLE: LineageScope.TABLES,
    LineageRetention.DELETE_ALL: LineageScope.ALL,
}
_SOURCES: Final = frozenset({LineageScope.SOURCE_TABLES, LineageScope.TABLES, LineageScope.ALL})
_SINKS: Final = frozenset({LineageScope.SINK_TABLES, LineageScope.TABLES, LineageScope.ALL})


class CallMapper:
    """Maps events in the order of their partition, and remembers which jobs are steps of which."""

    def __init__(self) -> None:
        self._steps: dict[str, set[str]] = {}

    def calls(self, event: Event, append_time: int | None = None) -> Iterator[StoreCall]:
        """Yield the calls for an event, in order. Nothing for what the interface can't express."""
        if isinstance(event, LineageDeleted):
            yield from self._deletions(event)
        elif isinstance(event, JobStatusChanged):
            yield from self._end_of_job(event)
        elif isinstance(event, (Committed, JobLineage)) and event.job is not None:
            time, job = cap_time(micros_of(event.time), append_time), _job_of(event.job)
            if event.parent_job is not None:
                self._steps.setdefault(_job_of(event.parent_job), set()).add(job)
            yield from _map_facts(event, job, time)

    def _deletions(self, event: LineageDeleted) -> Iterator[StoreCall]:
        """Yield deletions of all of a job's lineage, its steps included if the event says so."""
        narrower = (event.of_run, event.dataset, event.generation, event.up_to_snapshot, event.catalog)
        is_narrower = any(each is not None for each in narrower) or event.time - event.before > _CONFIRMING
        if event.of_job is None or is_narrower:  # deleting more than that would be wrong
            _LOG.warning("a deletion isn't carried out: this store can only delete all that a job has reported")
        else:
            yield from self._of_job(event.of_job, event.scope, has_steps=event.steps)

    def _end_of_job(self, event: JobStatusChanged) -> Iterator[StoreCall]:
        """Yield what is to go when a run ends. The interface knows no runs, so that is the lineage of its job."""
        scope = _DELETED_AT_END.get(event.on_job_end or LineageRetention.KEEP)
        if event.status.is_terminal and event.job is not None and scope is not None:
            yield from self._of_job(event.job, scope, has_steps=True)

    def _of_job(self, name: JobName, scope: LineageScope, *, has_steps: bool) -> Iterator[StoreCall]:
        """Yield a call for each kind of lineage; sinks go last, because they tell the steps."""
        job = _job_of(name)
        kinds = ((_DATA, _delete_data), (_SOURCES, _delete_sources), (_SINKS, _delete_sinks))
        for how in (how for scopes, how in kinds if scope in scopes):
            yield partial(self._delete, job, how, has_steps=has_steps)

    def _delete(
        self, job: str, how: Callable[[LineageMeta, str], None], store: LineageMeta, *, has_steps: bool
    ) -> None:
        for each in sorted({job, *(self._steps_in(store, job) if has_steps else ())}):
            how(store, each)

    def _steps_in(self, store: LineageMeta, job: str) -> Iterator[str]:
        """Yield the steps that were reported as such, and those that are called after the job and what they write.

        After a restart only the names are left: a job `etl.v2` isn't a step of `etl`.
        """
        yield from self._steps.get(job, ())
        begin = f"{job}."
        for entities in (store.sink_table_lineages, store.sink_data_lineages):
            for each in entities(where.job > begin):
                catalog = each.job.removeprefix(begin).removesuffix(f"{each.database}.{each.table}")
                if each.job == f"{begin}{catalog}{each.database}.{each.table}" and "." not in catalog[:-1]:
                    yield each.job


def _delete_data(store: LineageMeta, job: str) -> None:
    if isinstance(store, DeletesDataLineage):
        store.delete_data_lineage(job)
    else:
        _LOG.warning("data lineage of %s isn't deleted: this store has no method delete_data_lineage(job)", job)


def _delete_sources(store: LineageMeta, job: str) -> None:
    store.delete_source_table_lineage(job)


def _delete_sinks(store: LineageMeta, job: str) -> None:
    store.delete_sink_table_lineage(job)


def _job_of(name: JobName) -> str:
    namespace, job = job_name_key(name)
    return qualified_job_name(str(namespace), str(job))


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
        yield call_of(TableLineage(job=job, create_time=moment_of(time), **_names_of(place.table)))


def _data(
    place: Input | Output, event: Committed, job: str, time: int, call_of: Callable[[DataLineage], StoreCall]
) -> Iterator[StoreCall]:
    """Yield the call for a snapshot of the main branch; the interface has no place for other branches and versions."""
    if place.table is None or place.snapshot is None or not place.main:
        return
    names, at = _names_of(place.table), moment_of(time)
    yield call_of(DataLineage(job=job, create_time=at, barrier_id=event.barrier, snapshot_id=place.snapshot, **names))


def _names_of(table: TableName) -> dict[str, Any]:
    database, name = clean_text(table.database) or "", clean_text(table.table)
    return {"catalog": clean_text(table.catalog) or None, "database": database, "table": name}


def _data_last(outputs: Sequence[Output]) -> list[Output]:
    """Sort outputs, so that the last call for a table is the one that counts: new data rather than a compaction."""
    return sorted(outputs, key=lambda each: (each.commit_kind is not CommitKind.COMPACT, each.snapshot or 0))


def _source_table(entity: TableLineage) -> StoreCall:
    return lambda store: store.store_source_table_lineage(entity)


def _sink_table(entity: TableLineage) -> StoreCall:
    return lambda store: store.store_sink_table_lineage(entity)


def _source_data(entity: DataLineage) -> StoreCall:
    return lambda store: store.store_source_data_lineage(entity)


def _sink_data(entity: DataLineage) -> StoreCall:
    return lambda store: store.store_sink_data_lineage(entity)
