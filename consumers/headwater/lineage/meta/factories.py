"""Opens a `LineageMeta` by name, as a catalog's option `lineage-meta` gives it: an entry point, or `module:Factory`.

`LineageMeta` for event loops: the interface, and an adapter that runs any store on worker threads.
"""

from __future__ import annotations

import asyncio
from asyncio import to_thread
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Final, Protocol, runtime_checkable

from headwater import plugins
from headwater.errors import PluginError
from headwater.lineage.api import (
    LINEAGE_META,
    DataLineage,
    LineageMeta,
    LineageMetaContext,
    LineageMetaFactory,
    TableLineage,
)
from headwater.lineage.async_iteration import iterate_in_thread
from headwater.lineage.meta.event_based import DatabaseLineageMeta, MemoryLineageMeta
from headwater.lineage.predicates import Predicate
from headwater.lineage.store.opening import open_store
from headwater.lineage.store.options import StoreOptions


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


OPTION: Final = "lineage-meta"
DEFAULT: Final = "jdbc"


class JdbcLineageMetaFactory:
    """The entry point `jdbc`: a store in a database."""

    def identifier(self) -> str:
        return "jdbc"

    def create(self, context: LineageMetaContext) -> LineageMeta:
        """Open the store that a catalog's options name. Options that neither are `lineage-meta` nor begin with `jdbc.`
        are ignored."""
        store = open_store(StoreOptions.of_catalog(context.options))
        return DatabaseLineageMeta(store.engine, where=store.target.words)


class MemoryLineageMetaFactory:
    """The entry point `memory`: a store in memory, for tests."""

    def identifier(self) -> str:
        return "memory"

    def create(self, context: LineageMetaContext) -> MemoryLineageMeta:  # noqa: ARG002 - it needs no options
        return MemoryLineageMeta()


def open_lineage_meta(options: Mapping[str, str]) -> LineageMeta:
    """Open the store that a catalog's options name. The factory gets all options.

    Raises a PluginError if what the factory creates lacks methods of a store.
    """
    name = options.get(OPTION, DEFAULT)
    return _check_store(lineage_meta_factory(name).create(LineageMetaContext(options)), name)


def _check_store(store: object, name: str) -> LineageMeta:
    if not isinstance(store, LineageMeta):
        expected = (method for method in vars(LineageMeta) if method[0] != "_")
        lacking = ", ".join(method for method in expected if not hasattr(store, method))
        raise PluginError(
            f"the factory {name} created an object of {type(store).__name__}, which lacks {lacking}: "
            "derive its class from headwater.lineage.api.LineageMeta"
        )
    return store


async def open_async_lineage_meta(options: Mapping[str, str]) -> ThreadedLineageMeta:
    """Open the same store for an event loop."""
    return ThreadedLineageMeta(await asyncio.to_thread(open_lineage_meta, options))


def lineage_meta_factory(name: str) -> LineageMetaFactory:
    """Load a factory by the name of its entry point, or by `package.module:Factory`.

    Raises a PluginError if there is none, if it can't be created without arguments, or if it lacks a method.
    """
    found = plugins.create(LINEAGE_META, name)
    if not isinstance(found, LineageMetaFactory):
        raise PluginError(f"{name} is no factory of stores: it needs the methods identifier() and create(context)")
    plugins.check_methods(found, {"create": "context"})
    return found
