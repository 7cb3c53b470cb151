"""Asks the store: each question on a thread and a connection of its own, for a bounded time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, text

from headwater.errors import TransientError
from headwater.lineage.store import Store, translate_errors
from headwater.web.settings import QuestionLimits

T = TypeVar("T")
_GRACE: Final = 1.0
"""How many seconds a database gets to say itself that the time is over."""


class QuestionTimeoutError(TransientError):
    """The answer takes longer than a question may take."""


class StoreQuestions:
    """Puts questions to one store, for an event loop."""

    def __init__(self, store: Store, limits: QuestionLimits) -> None:
        self._store = store
        self._limits = limits
        self._places = asyncio.Semaphore(limits.at_once)

    async def ask(self, question: Callable[[Connection], T]) -> T:
        """Return the answer; raises a QuestionTimeoutError if it takes too long."""
        async with self._places:
            return await asyncio.to_thread(self._ask, question)

    def _ask(self, question: Callable[[Connection], T]) -> T:
        with translate_errors(self._store.target.words), self._store.engine.connect() as connection:
            seconds = self._limits.seconds
            with _bounded(connection, seconds) as is_late:
                try:
                    return question(connection)
                except Exception as e:
                    if is_late.is_set():
                        raise QuestionTimeoutError(
                            f"no answer within {seconds:g} seconds: ask for less (a smaller depth, a shorter time), or "
                            "serve with a larger --question-seconds"
                        ) from e
                    raise


@contextmanager
def _bounded(connection: Connection, seconds: float) -> Generator[threading.Event]:
    """Let the database end a statement that takes longer; the event says that it has."""
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        _interrupt(connection)

    _limit_statements(connection, seconds + _GRACE)
    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield is_late
    finally:
        timer.cancel()


def _limit_statements(connection: Connection, seconds: float) -> None:
    """Servers end a statement themselves, even if this process is gone."""
    name = connection.dialect.name
    if name == "postgresql":
        connection.execute(text(f"SET LOCAL statement_timeout = {int(seconds * 1000)}"))
    elif name == "mariadb" or (name == "mysql" and getattr(connection.dialect, "is_mariadb", False)):
        connection.execute(text(f"SET SESSION max_statement_time = {seconds:.3f}"))
    elif name == "mysql":
        connection.execute(text(f"SET SESSION max_execution_time = {int(seconds * 1000)}"))


def _interrupt(connection: Connection) -> None:
    """Interrupt the statement that runs, where the client can: psycopg, SQLite and DuckDB."""
    driver: Any = connection.connection.driver_connection
    for name in ("cancel_safe", "interrupt"):
        stop = getattr(driver, name, None)
        if stop is not None:
            stop()
            return
