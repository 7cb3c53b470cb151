"""Runs transactions: repeats those that conflict with another one, and translates errors."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from headwater.lineage.sql.errors import StoreDataError, error_class_of, error_message, translate_error

T = TypeVar("T")
_LET_GO: Final = text(
    "SELECT set_config('idle_in_transaction_session_timeout', '60s', true) "
    "WHERE current_setting('idle_in_transaction_session_timeout') = '0'"
)
"""A client that hangs within a transaction would block all others for as long as PostgreSQL takes it for alive, which
can be hours. A limit that an administrator set is kept."""
_RETRY_SECONDS: Final = 20.0
"""How long a conflicting transaction is repeated."""
_FIRST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.5


class Transactions:
    """Runs transactions for any thread, at READ COMMITTED.

    An upsert locks the row that it updates and sees its latest version, so it never overwrites another writer's values
    with older ones. No transaction reads first and writes later, so a higher level would only cause more conflicts, and
    gap locks on MySQL.
    """

    def __init__(self, engine: Engine, where: str | None = None) -> None:
        self.engine = engine
        self.where = where or f"{engine.dialect.name}://{engine.url.host or ''}/{engine.url.database or ''}"
        self._is_postgres = engine.dialect.name == "postgresql"
        is_lite = engine.dialect.name == "sqlite"
        self._engine = engine if is_lite else engine.execution_options(isolation_level="READ COMMITTED")

    def run(self, work: Callable[[Connection], T]) -> tuple[T, int]:
        """Run `work` and commit. Return its result, and how often it was repeated.

        Raises the errors of `sql.errors`; a StoreDataError if the database refuses a value. After an error nothing is
        written.
        """
        deadline, attempt = time.monotonic() + _RETRY_SECONDS, 0
        while True:
            try:
                with self._engine.begin() as connection:
                    if self._is_postgres:
                        connection.execute(_LET_GO)
                    return work(connection), attempt
            except (SQLAlchemyError, StoreDataError, *DRIVER_DATA_ERRORS) as e:
                if is_data_error(e):
                    raise to_data_error(e, self.where) from e
                if not is_conflict(e) or time.monotonic() > deadline:
                    raise translate_error(e, self.where) from e
            time.sleep(_pause(attempt))
            attempt += 1


def _pause(attempt: int) -> float:
    """Return the next pause: longer each time, and random, so that two transactions don't conflict again."""
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * (1 << attempt))
    return random.uniform(0.5, 1.0) * longest  # noqa: S311 - no secret


DRIVER_DATA_ERRORS: Final = (UnicodeError, OverflowError, struct.error)
"""What drivers raise for values that they can't send."""
_SQLSTATES: Final = frozenset({"40001", "40P01"})
_NUMBERS: Final = frozenset({1205, 1213})
_LITE: Final = ("database is locked", "database table is locked")


def is_conflict(error: BaseException) -> bool:
    """Return whether two transactions blocked each other and this one was rolled back. Repeating it helps."""
    raised: Any = error.orig if isinstance(error, DBAPIError) else None
    if getattr(raised, "sqlstate", None) in _SQLSTATES:
        return True
    code: Any = next(iter(getattr(raised, "args", ())), None)
    return code in _NUMBERS or code in _LITE


def is_data_error(error: BaseException) -> bool:
    """Return whether the database refuses a value and always will."""
    if isinstance(error, (StoreDataError, *DRIVER_DATA_ERRORS)):
        return True
    return isinstance(error, SQLAlchemyError) and error_class_of(error) is StoreDataError


def to_data_error(error: BaseException, where: str) -> StoreDataError:
    """Translate an error to a StoreDataError with the message of whoever refused the value."""
    if isinstance(error, StoreDataError):
        return error
    words = error_message(error) if isinstance(error, SQLAlchemyError) else str(error)
    return StoreDataError(f"{where}: {words}: it is the row that is wrong, not the store")
