"""`LineageMeta` for event loops: the interface, and an adapter that runs any store on worker threads."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Protocol, runtime_checkable

from headwater.lineage.api import DataLineage, LineageMeta, TableLineage
from headwater.lineage.async_iteration import iterate_in_thread
from headwater.lineage.predicates import Predicate


@runtime_checkable
class AsyncLineageMeta(Protocol):
    """The methods of `LineageMeta`, awaited. Queries stream: close an iterator (`contextlib.aclosing`) unless you read
    it to its end."""

    async def store_source_table_lineage(self, entity: TableLineage) -> None: ...

    async def delete_source_table_lineage(self, job: str) -> None: ...

    def source_table_lineages(self, predicate: Predicate | None = None) -> AsyncIterator[TableLineage]: ...

    async def store_sink_table_lineage(self, entity: TableLineage) -> None: ...

    def sink_table_lineages(self, predicate: Predicate | None = None) -> AsyncIterator[TableLineage]: ...

    async def delete_sink_table_lineage(self, job: str) -> None: ...

    async def store_source_data_lineage(self, entity: DataLineage) -> None: ...

    def source_data_lineages(self, predicate: Predicate | None = None) -> AsyncIterator[DataLineage]: ...

    async def store_sink_data_lineage(self, entity: DataLineage) -> None: ...

    def sink_data_lineages(self, predicate: Predicate | None = None) -> AsyncIterator[DataLineage]: ...

    async def close(self) -> None: ...


class ThreadedLineageMeta:
    """Adapts a thread-safe `LineageMeta` to `AsyncLineageMeta`: each call runs on a worker thread."""

    def __init__(self, store: LineageMeta) -> None:
        self._store = store

    async def store_source_table_lineage(self, entity: TableLineage) -> None:
        await to_thread(self._store.store_source_table_lineage, entity)

    async def delete_source_table_lineage(self, job: str) -> None:
        await to_thread(self._store.delete_source_table_lineage, job)

    def source_table_lineages(self, predicate: Predicate | None = None) -> AsyncGenerator[TableLineage]:
        return iterate_in_thread(lambda: self._store.source_table_lineages(predicate))

    async def store_sink_table_lineage(self, entity: TableLineage) -> None:
        await to_thread(self._store.store_sink_table_lineage, entity)

    def sink_table_lineages(self, predicate: Predicate | None = None) -> AsyncGenerator[TableLineage]:
        return iterate_in_thread(lambda: self._store.sink_table_lineages(predicate))

    async def delete_sink_table_lineage(self, job: str) -> None:
        await to_thread(self._store.delete_sink_table_lineage, job)

    async def store_source_data_lineage(self, entity: DataLineage) -> None:
        await to_thread(self._store.store_source_data_lineage, entity)

    def source_data_lineages(self, predicate: Predicate | None = None) -> AsyncGenerator[DataLineage]:
        return iterate_in_thread(lambda: self._store.source_data_lineages(predicate))

    async def store_sink_data_lineage(self, entity: DataLineage) -> None:
        await to_thread(self._store.store_sink_data_lineage, entity)

    def sink_data_lineages(self, predicate: Predicate | None = None) -> AsyncGenerator[DataLineage]:
        return iterate_in_thread(lambda: self._store.sink_data_lineages(predicate))

    async def close(self) -> None:
        await to_thread(self._store.close)
