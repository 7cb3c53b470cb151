"""Any store for an event loop: each call on a thread."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import AsyncGenerator

from headwater.lineage.api import LineageMeta
from headwater.lineage.entities import DataLineage, TableLineage
from headwater.lineage.predicates import Predicate
from headwater.lineage.streaming import streamed


class LineageMetaOnThreads:
    """An `AsyncLineageMeta` out of a `LineageMeta` that is for any thread."""

    def __init__(self, store: LineageMeta) -> None:
        self._store = store

    async def store_source_table_lineage(self, entity: TableLineage) -> None:
        await to_thread(self._store.store_source_table_lineage, entity)

    async def delete_source_table_lineage(self, job: str) -> None:
        await to_thread(self._store.delete_source_table_lineage, job)

    def source_table_lineages(self, predicate: Predicate | None = None) -> AsyncGenerator[TableLineage]:
        return streamed(lambda: self._store.source_table_lineages(predicate))

    async def store_sink_table_lineage(self, entity: TableLineage) -> None:
        await to_thread(self._store.store_sink_table_lineage, entity)

    def sink_table_lineages(self, predicate: Predicate | None = None) -> AsyncGenerator[TableLineage]:
        return streamed(lambda: self._store.sink_table_lineages(predicate))

    async def delete_sink_table_lineage(self, job: str) -> None:
        await to_thread(self._store.delete_sink_table_lineage, job)

    async def store_source_data_lineage(self, entity: DataLineage) -> None:
        await to_thread(self._store.store_source_data_lineage, entity)

    def source_data_lineages(self, predicate: Predicate | None = None) -> AsyncGenerator[DataLineage]:
        return streamed(lambda: self._store.source_data_lineages(predicate))

    async def store_sink_data_lineage(self, entity: DataLineage) -> None:
        await to_thread(self._store.store_sink_data_lineage, entity)

    def sink_data_lineages(self, predicate: Predicate | None = None) -> AsyncGenerator[DataLineage]:
        return streamed(lambda: self._store.sink_data_lineages(predicate))

    async def close(self) -> None:
        await to_thread(self._store.close)
