"""The store's interface for event loops: the same methods, in the same order, with the same words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable

from headwater.lineage.entities import DataLineage, TableLineage
from headwater.lineage.predicates import Predicate


@runtime_checkable
class AsyncLineageMeta(Protocol):
    """`LineageMeta`, awaited. What is iterated streams; close it (`contextlib.aclosing`) where it isn't read to its
    end."""

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
