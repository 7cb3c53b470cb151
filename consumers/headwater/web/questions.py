"""Asks the store on threads, each question for a bounded time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from sqlalchemy import Engine, event

from headwater.errors import TransientError
from headwater.lineage.store import Store, translate_errors
from headwater.web.settings import QuestionLimits

T = TypeVar("T")
_STEPS: Final = 20_000
"""How many steps SQLite makes before it asks whether to go on."""


_LIMITED: Final = "headwater.web.deadline"


class QuestionTimeoutError(TransientError):
    """The answer takes longer than a question may take."""


class _Deadline(threading.local):
    """Until when the question that this thread asks may take."""

    at: float | None = None

    @property
    def is_over(self) -> bool:
        return self.at is not None and time.monotonic() > self.at


class StoreQuestions:
    """Puts questions to one store, for an event loop."""

    def __init__(self, store: Store, limits: QuestionLimits) -> None:
        self._store = store
        self._limits = limits
        self._places = asyncio.Semaphore(limits.at_once)
        self._deadline = _Deadline()
        _limit_engine(store.engine, self._deadline, limits.seconds)

    async def ask(self, question: Callable[[Store], T]) -> T:
        """Return the answer; raises a QuestionTimeoutError if it takes too long."""
        async with self._places:
            return await asyncio.to_thread(self._ask, question)

    def _ask(self, question: Callable[[Store], T]) -> T:
        seconds = self._limits.seconds
        self._deadline.at = time.monotonic() + seconds
        try:
            with translate_errors(self._store.target.words):
                return question(self._store)
        except TransientError as e:
            if self._deadline.is_over:
                advice = "ask for less, such as a smaller depth, or serve with a larger --question-seconds"
                raise QuestionTimeoutError(f"there is no answer within {seconds:g} seconds: {advice}") from e
            raise
        finally:
            self._deadline.at = None


def _limit_engine(engine: Engine, deadline: _Deadline, seconds: float) -> None:
    """Let databases end statements that take too long, and begin none after the deadline."""

    @event.listens_for(engine, "checkout")
    def limit(connection: Any, record: Any, _: Any) -> None:
        """Some connections were made before: a store is examined where it is opened."""
        if record.info.get(_LIMITED) is not deadline:
            _limit_statements(engine.dialect, connection, deadline, seconds)
            record.info[_LIMITED] = deadline

    @event.listens_for(engine, "before_cursor_execute")
    def check(*_: Any) -> None:
        if deadline.is_over:
            raise QuestionTimeoutError("the time for this question is over")


def _limit_statements(dialect: Any, connection: Any, deadline: _Deadline, seconds: float) -> None:
    if dialect.name == "sqlite":
        connection.set_progress_handler(lambda: deadline.is_over, _STEPS)
        return
    milliseconds = int(seconds * 1000)
    is_mariadb = getattr(dialect, "is_mariadb", False)
    statement = {
        "postgresql": f"SET statement_timeout = {milliseconds}",
        "mariadb": f"SET SESSION max_statement_time = {seconds:.3f}",
        "mysql": f"SET SESSION max_execution_time = {milliseconds}",
    }.get("mariadb" if is_mariadb else dialect.name)
    if statement is not None:  # DuckDB, which asks tables of a lake, has no such setting
        with connection.cursor() as cursor:
            cursor.execute(statement)
        connection.commit()
