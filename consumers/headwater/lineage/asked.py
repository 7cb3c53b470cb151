"""A question is a function of a connection; here it becomes a method, without its signature being written again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from sqlalchemy import Connection

from headwater.lineage.store import Store, troubles
from headwater.lineage.streaming import streamed

P = ParamSpec("P")
T = TypeVar("T")


class _HasStore(Protocol):
    @property
    def store(self) -> Store: ...


class Asks(Generic[P, T]):
    """A method that asks on a connection of its own."""

    def __init__(self, question: Callable[Concatenate[Connection, P], T]) -> None:
        self._question = question
        self.__doc__ = question.__doc__

    def __get__(self, instance: _HasStore, owner: object = None) -> Callable[P, T]:
        def ask(*args: P.args, **kwargs: P.kwargs) -> T:
            return _answered(instance.store, self._question, *args, **kwargs)

        return ask


class AsksAsync(Generic[P, T]):
    """The same, on a thread."""

    def __init__(self, question: Callable[Concatenate[Connection, P], T]) -> None:
        self._question = question
        self.__doc__ = question.__doc__

    def __get__(self, instance: _HasStore, owner: object = None) -> Callable[P, Coroutine[Any, Any, T]]:
        async def ask(*args: P.args, **kwargs: P.kwargs) -> T:
            return await asyncio.to_thread(lambda: _answered(instance.store, self._question, *args, **kwargs))

        return ask


class Streams(Generic[P, T]):
    """A method whose answer comes bit by bit, and holds a connection until it has ended or is closed."""

    def __init__(self, question: Callable[Concatenate[Connection, P], Iterator[T]]) -> None:
        self._question = question
        self.__doc__ = question.__doc__

    def __get__(self, instance: _HasStore, owner: object = None) -> Callable[P, Generator[T, None, None]]:
        def ask(*args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
            with troubles(instance.store.target.words), instance.store.engine.connect() as connection:
                yield from self._question(connection, *args, **kwargs)

        return ask


class StreamsAsync(Generic[P, T]):
    """The same, each portion being fetched on a thread."""

    def __init__(self, question: Callable[Concatenate[Connection, P], Iterator[T]]) -> None:
        self._question = question
        self.__doc__ = question.__doc__

    def __get__(self, instance: _HasStore, owner: object = None) -> Callable[P, AsyncGenerator[T, None]]:
        streams = Streams(self._question).__get__(instance)

        def ask(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
            return streamed(lambda: streams(*args, **kwargs))

        return ask


def _answered(store: Store, question: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    with troubles(store.target.words), store.engine.connect() as connection:
        return question(connection, *args, **kwargs)
