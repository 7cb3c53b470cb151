"""The stores of `LineageMeta` that keep rows, in a database or in memory.

A call becomes an event, and events become rows.

Everything that changes a store is an event. Otherwise a replay of the events would bring back what a call deleted, and
forget what a call stored. The one in memory is for tests, and to compare databases with.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Engine, Select

from headwater.events.administration import LineageDeleted, LineageScope
from headwater.events.clock import moment_of
from headwater.events.envelope import Event
from headwater.events.fingerprints import fingerprint_of
from headwater.events.jobs import Committed, Input, JobLineage, Output, SinkSchema, SourceSchema
from headwater.events.names import JobName, TableName
from headwater.events.producer import Producer
from headwater.lineage.api import DataLineage, TableLineage
from headwater.lineage.bulk import DatabaseBulkMeta, WriteBatch
from headwater.lineage.mapping import map_event
from headwater.lineage.mapping.commits import COMPACTED, SINK, SOURCE
from headwater.lineage.mapping.keys import qualified_job_name
from headwater.lineage.predicates import Predicate
from headwater.lineage.rows import Row, RowSet
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import (
    DATA,
    TABLES_OF,
    CatalogNames,
    CatalogSwitches,
    DeletionSubject,
    TombstoneIndex,
    deletion_subject,
)
from headwater.lineage.sql import entity_queries as entities
from headwater.lineage.sql.errors import translate_errors

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


_AT_ONCE: Final = 1_000


def _streaming(connection: Connection) -> Connection:
    """Fetch rows in portions, so that a large result doesn't have to fit into memory."""
    return connection.execution_options(yield_per=_AT_ONCE)


class DatabaseLineageMeta(EventBasedLineageMeta):
    """A `LineageMeta` in a database, for any thread. An iterator holds a connection until it ends or is closed."""

    def __init__(self, engine: Engine, catalog: str = "", where: str = "the store") -> None:
        super().__init__(catalog)
        self._engine = engine
        self._where = where
        self._bulk = DatabaseBulkMeta(engine, where)

    def close(self) -> None:
        self._engine.dispose()

    def _merge(self, rows: Iterable[Row]) -> None:
        self._bulk.merge(WriteBatch(tuple(rows)))

    def _tables(self, side: str, predicate: Predicate | None) -> Iterator[TableLineage]:
        selected = entities.select_table_entities(side, predicate, self._engine.dialect.name)
        return (TableLineage(**values) for values in self._streamed(selected))

    def _data(self, side: str, predicate: Predicate | None) -> Iterator[DataLineage]:
        selected = entities.select_data_entities(side, predicate, self._engine.dialect.name)
        return (DataLineage(**values) for values in self._streamed(selected))

    def _streamed(self, selected: Select[Any]) -> Iterator[dict[str, Any]]:
        with (
            translate_errors(self._where),
            self._engine.connect() as connection,
            _streaming(connection).execute(selected) as result,
        ):
            for row in result.mappings():
                yield {**row, "create_time": moment_of(row["create_time"])}


class MemoryLineageMeta(EventBasedLineageMeta):
    """A `LineageMeta` in memory, for any thread."""

    def __init__(self, catalog: str = "") -> None:
        super().__init__(catalog)
        self._state = RowSet()
        self._lock = threading.Lock()

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _merge(self, rows: Iterable[Row]) -> None:
        with self._lock:
            self._state.merge(rows)

    def _tables(self, side: str, predicate: Predicate | None) -> Iterator[TableLineage]:
        with self._lock:
            entities = list(self._table_entities(side))
        return (entity for entity in entities if predicate is None or predicate.holds(entity))

    def _data(self, side: str, predicate: Predicate | None) -> Iterator[DataLineage]:
        with self._lock:
            entities = list(self._data_entities(side))
        return (entity for entity in entities if predicate is None or predicate.holds(entity))

    def _table_entities(self, side: str) -> Iterator[TableLineage]:
        firsts: dict[tuple[Any, ...], int] = {}
        hides = self._hiding()
        for row in self._state.rows(t.TABLE_LINEAGE):
            values = row.as_dict
            if values["side"] != side or values["table_name"] is None or values["job"] is None:
                continue
            if not hides(deletion_subject(row, TABLES_OF[side])):
                key = (_job(values), values["catalog"] or None, values["database_name"], values["table_name"])
                firsts[key] = min(firsts.get(key, row.times.first), row.times.first)
        for (job, catalog, database, table), first in firsts.items():
            yield TableLineage(job=job, catalog=catalog, database=database, table=table, create_time=moment_of(first))

    def _data_entities(self, side: str) -> Iterator[DataLineage]:
        """Yield one snapshot for each job, barrier and table: new data before compactions, and later ones before
        earlier ones."""
        best: dict[tuple[Any, ...], tuple[tuple[Any, ...], Row]] = {}
        hides = self._hiding()
        commits = {row.id: row.as_dict for row in self._state.rows(t.COMMIT)}
        places = {row.id: row for row in self._state.rows(t.PLACE)}
        for row in self._state.rows(t.READ if side == SOURCE else t.WRITE):
            commit_id, place_id = (row.as_dict[name] for name in ("commit_id", "place_id"))
            commit, place = commits[bytes(commit_id)], places[bytes(place_id)]  # type: ignore[arg-type]  # of its event
            values = row.as_dict | place.as_dict
            if values["table_name"] is None or values["snapshot"] is None or commit["job"] is None:
                continue
            if not values["main"] or hides(deletion_subject(row, DATA, commit, place)):
                continue
            names = (values["catalog"] or None, values["database_name"], values["table_name"])
            key = (_job(commit), commit["barrier"], *names)
            rank = (values["commit_kind"] != COMPACTED, row.times.last, values["snapshot"], row.id)
            if key not in best or rank > best[key][0]:
                best[key] = (rank, row)
        for (job, barrier, catalog, database, table), (rank, row) in best.items():
            yield DataLineage(
                job=job,
                catalog=catalog,
                database=database,
                table=table,
                barrier_id=barrier,
                snapshot_id=rank[2],
                create_time=moment_of(row.times.first),
            )

    def _hiding(self) -> Callable[[DeletionSubject], bool]:
        datasets = {row.id: row for row in self._state.rows(t.DATASET)}
        catalogs = CatalogNames(self._state.rows(t.CATALOG), self._state.rows(t.CATALOG_NAME), datasets)
        stones = TombstoneIndex(self._state.rows(t.TOMBSTONE))
        switches = CatalogSwitches(self._state.rows(t.CATALOG_OPTION))
        return lambda subject: stones.hide(subject, catalogs) or switches.hide(subject, catalogs)


def _job(values: dict[str, Any]) -> str:
    return qualified_job_name(values["job_namespace"], values["job"])
