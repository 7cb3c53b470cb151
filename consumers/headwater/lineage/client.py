"""`Lineage` and `AsyncLineage`: a store that answers questions.

Each question is a function in `headwater.lineage.questions` whose first parameter is a connection. Here it becomes a
method without that parameter, for threads and for event loops alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from sqlalchemy import Connection
from typing_extensions import Self

from headwater.lineage.async_iteration import iterate_in_thread
from headwater.lineage.lake.formats import SqlSession
from headwater.lineage.questions import columns, completeness, jobs, names, paths, snapshots, states, tables
from headwater.lineage.questions import generations as naming
from headwater.lineage.questions import history as modifications
from headwater.lineage.questions.checkpoints import checkpoints
from headwater.lineage.questions.lateness import lateness
from headwater.lineage.questions.runs import runs
from headwater.lineage.questions.uses import uses
from headwater.lineage.store import Store, StoreOptions, open_store, translate_errors

P = ParamSpec("P")
T = TypeVar("T")


class Query(Generic[P, T]):
    """A question as a method. Each call uses a connection of its own; an `AsyncLineage` runs it on a thread."""

    def __init__(self, question: Callable[Concatenate[Connection, P], T]) -> None:
        self._question = question
        self.__doc__ = question.__doc__

    @overload
    def __get__(self, instance: None, owner: object = None) -> Self: ...

    @overload
    def __get__(self, instance: Lineage, owner: object = None) -> Callable[P, T]: ...

    @overload
    def __get__(self, instance: AsyncLineage, owner: object = None) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, instance: Lineage | AsyncLineage | None, owner: object = None) -> Any:
        if instance is None:
            return self
        store = instance.store

        def answer(*args: P.args, **kwargs: P.kwargs) -> T:
            with translate_errors(store.target.words), store.engine.connect() as connection:
                return self._question(connection, *args, **kwargs)

        async def answer_in_thread(*args: P.args, **kwargs: P.kwargs) -> T:
            return await asyncio.to_thread(answer, *args, **kwargs)

        return answer if isinstance(instance, Lineage) else answer_in_thread


class StreamQuery(Generic[P, T]):
    """A question whose answer is an iterator. It holds a connection until it ends or is closed; an `AsyncLineage`
    fetches each portion on a thread."""

    def __init__(self, question: Callable[Concatenate[Connection, P], Iterator[T]]) -> None:
        self._question = question
        self.__doc__ = question.__doc__

    @overload
    def __get__(self, instance: None, owner: object = None) -> Self: ...

    @overload
    def __get__(self, instance: Lineage, owner: object = None) -> Callable[P, Generator[T, None, None]]: ...

    @overload
    def __get__(self, instance: AsyncLineage, owner: object = None) -> Callable[P, AsyncGenerator[T, None]]: ...

    def __get__(self, instance: Lineage | AsyncLineage | None, owner: object = None) -> Any:
        if instance is None:
            return self
        store = instance.store

        def rows(*args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
            with translate_errors(store.target.words), store.engine.connect() as connection:
                yield from self._question(connection, *args, **kwargs)

        def rows_in_thread(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
            return iterate_in_thread(lambda: rows(*args, **kwargs))

        return rows if isinstance(instance, Lineage) else rows_in_thread


class _Questions:
    """The questions that both clients answer."""

    def __init__(self, store: Store) -> None:
        self.store = store

    find = Query(names.find)
    upstream_tables = Query(tables.upstream_tables)
    downstream_tables = Query(tables.downstream_tables)
    upstream_snapshots = Query(snapshots.upstream_snapshots)
    downstream_snapshots = Query(snapshots.downstream_snapshots)
    stream_upstream_snapshots = StreamQuery(snapshots.stream_upstream_snapshots)
    stream_downstream_snapshots = StreamQuery(snapshots.stream_downstream_snapshots)
    upstream_state = Query(states.upstream_state)
    upstream_columns = Query(columns.upstream_columns)
    downstream_columns = Query(columns.downstream_columns)
    path_between = Query(paths.path_between)
    complete_until = Query(completeness.complete_until)
    gaps = Query(completeness.gaps)
    jobs_of = Query(jobs.jobs_of)
    tables_of = Query(jobs.tables_of)
    runs = Query(runs)
    history = Query(modifications.history)
    schema_changes = Query(modifications.schema_changes)
    aliases = Query(naming.aliases)
    generations = Query(naming.generations)
    branches = Query(naming.branches)
    lateness = Query(lateness)
    uses = Query(uses)
    checkpoints = Query(checkpoints)


class Lineage(_Questions):
    """Answers questions from a store. Any thread may use it. Each answer is one read of the store's current content."""

    @classmethod
    def open(cls, url: str | StoreOptions, *, spark: SqlSession | None = None) -> Self:
        """Open a store to read it. Creates and changes nothing; raises a StoreSchemaError where there is no store.

        With `spark`, a session, a lake store is asked by Spark, which knows its catalog.
        """
        return cls(open_store(url, readonly=True, spark=spark))

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()


class AsyncLineage(_Questions):
    """Answers the same questions without blocking an event loop.

    Methods that stream return an async iterator; close it with `contextlib.aclosing` unless you read it to its end.
    """

    @classmethod
    async def open(cls, url: str | StoreOptions, *, spark: SqlSession | None = None) -> Self:
        return cls(await asyncio.to_thread(open_store, url, readonly=True, spark=spark))

    async def close(self) -> None:
        await asyncio.to_thread(self.store.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        await self.close()
