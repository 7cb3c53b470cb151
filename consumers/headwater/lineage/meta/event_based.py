"""Base of the stores that keep rows: each call becomes an event, and events become rows.

Everything that changes a store is an event. Otherwise a replay of the events would bring back what a call deleted, and
forget what a call stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Final
from uuid import UUID

from headwater.events.administration import LineageDeleted, LineageScope
from headwater.events.clock import moment_of
from headwater.events.envelope import Event
from headwater.events.fingerprints import fingerprint_of
from headwater.events.jobs import Committed, Input, JobLineage, Output, SinkSchema, SourceSchema
from headwater.events.names import JobName, TableName
from headwater.events.producer import Producer
from headwater.lineage.api import DataLineage, TableLineage
from headwater.lineage.mapping import map_event
from headwater.lineage.mapping.commits import SINK, SOURCE
from headwater.lineage.predicates import Predicate
from headwater.lineage.rows import Row

CALL_INCARNATION: Final = UUID("68656164-7761-8465-8220-63616c6c6564")
"""The incarnation of barriers that are stored by calls. Different processes may store the sources and the sinks of one
barrier, and they have to become one commit."""


class EventBasedLineageMeta(ABC):
    """A `LineageMeta` that keeps rows. It is thread-safe if its subclass is."""

    def __init__(self, catalog: str = "") -> None:
        self._catalog = catalog
        self._producer = Producer()

    def store_source_table_lineage(self, entity: TableLineage) -> None:
        inputs = (SourceSchema(dataset=None, table=self._table_name(entity)),)
        job, fingerprint = JobName(name=entity.job), fingerprint_of(inputs, ())
        self._emit(JobLineage(job=job, fingerprint=fingerprint, inputs=inputs, outputs=()))

    def delete_source_table_lineage(self, job: str) -> None:
        self._delete(job, LineageScope.SOURCE_TABLES)

    def source_table_lineages(self, predicate: Predicate | None = None) -> Iterator[TableLineage]:
        return self._tables(SOURCE, predicate)

    def store_sink_table_lineage(self, entity: TableLineage) -> None:
        outputs = (SinkSchema(dataset=None, table=self._table_name(entity)),)
        self._emit(JobLineage(job=JobName(name=entity.job), fingerprint=fingerprint_of((), outputs), outputs=outputs))

    def delete_sink_table_lineage(self, job: str) -> None:
        self._delete(job, LineageScope.SINK_TABLES)

    def sink_table_lineages(self, predicate: Predicate | None = None) -> Iterator[TableLineage]:
        return self._tables(SINK, predicate)

    def store_source_data_lineage(self, entity: DataLineage) -> None:
        source = Input(dataset=None, table=self._table_name(entity), snapshot=entity.snapshot_id)
        self._emit_commit(entity, inputs=(source,))

    def source_data_lineages(self, predicate: Predicate | None = None) -> Iterator[DataLineage]:
        return self._data(SOURCE, predicate)

    def store_sink_data_lineage(self, entity: DataLineage) -> None:
        output = Output(dataset=None, table=self._table_name(entity), snapshot=entity.snapshot_id)
        self._emit_commit(entity, outputs=(output,))

    def sink_data_lineages(self, predicate: Predicate | None = None) -> Iterator[DataLineage]:
        return self._data(SINK, predicate)

    def delete_data_lineage(self, job: str) -> None:
        """Delete a job's data lineage. PIP-5 has this as an action only, and not in its interface."""
        self._delete(job, LineageScope.DATA)

    def _delete(self, job: str, scope: LineageScope) -> None:
        """Delete everything that was stored so far. The next call gets a later time, however soon it comes."""
        now = self._producer.clock.now()
        self._emit(LineageDeleted(of_job=JobName(name=job), scope=scope, before=moment_of(now)))
        self._producer.clock.pass_over(now)

    def _emit_commit(
        self, entity: DataLineage, *, inputs: tuple[Input, ...] = (), outputs: tuple[Output, ...] = ()
    ) -> None:
        job, barrier = JobName(name=entity.job), entity.barrier_id
        self._emit(Committed(job=job, barrier=barrier, incarnation=CALL_INCARNATION, inputs=inputs, outputs=outputs))

    def _emit(self, draft: Event) -> None:
        self._producer.emit(draft, lambda event, _: self._merge(map_event(event)))

    def _table_name(self, entity: TableLineage) -> TableName:
        return TableName(catalog=entity.catalog or self._catalog, database=entity.database, table=entity.table)

    @abstractmethod
    def _merge(self, rows: Iterable[Row]) -> None:
        """Store all of these rows or none. They are visible when this returns."""

    @abstractmethod
    def _tables(self, side: str, predicate: Predicate | None) -> Iterator[TableLineage]: ...

    @abstractmethod
    def _data(self, side: str, predicate: Predicate | None) -> Iterator[DataLineage]: ...
