"""A transaction that is begun again where it met another one, and whose errors say what to do."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from headwater.lineage.bulk.natures import OF_DRIVERS, is_clash, is_refusal, refusal
from headwater.lineage.sql.troubles import StoreDataError, trouble_of

T = TypeVar("T")
_LET_GO: Final = text(
    "SELECT set_config('idle_in_transaction_session_timeout', '60s', true) "
    "WHERE current_setting('idle_in_transaction_session_timeout') = '0'"
)
"""Who stands still in mid-transaction, or whose host is gone, holds its rows against all others for as long as
PostgreSQL takes it for alive, which may be hours. An administrator's own limit holds."""
_PATIENCE: Final = 20.0
"""Seconds in which it is begun again and again."""
_FIRST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.5


class Transactions:
    """For any thread.

    They are READ COMMITTED: an upsert locks the row that it meets, in the version that is there by then, and merges
    with that one, so nothing told by another is overwritten by what was read before. Nothing is read to be written.
    A higher level would only give up more transactions, and have MySQL lock the gaps between rows.
    """

    def __init__(self, engine: Engine, where: str | None = None) -> None:
        self.engine = engine
        self.where = where or f"{engine.dialect.name}://{engine.url.host or ''}/{engine.url.database or ''}"
        self._is_postgres = engine.dialect.name == "postgresql"
        is_lite = engine.dialect.name == "sqlite"
        self._engine = engine if is_lite else engine.execution_options(isolation_level="READ COMMITTED")

    def run(self, work: Callable[[Connection], T]) -> tuple[T, int]:
        """What `work` gave, committed, and how often it was begun again. Raises what `sql.troubles` has: a
        StoreDataError where the database refuses the data. Nothing of it is there then."""
        deadline, attempt = time.monotonic() + _PATIENCE, 0
        while True:
            try:
                with self._engine.begin() as connection:
                    if self._is_postgres:
                        connection.execute(_LET_GO)
                    return work(connection), attempt
            except (SQLAlchemyError, StoreDataError, *OF_DRIVERS) as e:
                if is_refusal(e):
                    raise refusal(e, self.where) from e
                if not is_clash(e) or time.monotonic() > deadline:
                    raise trouble_of(e, self.where) from e
            time.sleep(_pause(attempt))
            attempt += 1


def _pause(attempt: int) -> float:
    """Longer each time, and never the same for two that met."""
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * (1 << attempt))
    return random.uniform(0.5, 1.0) * longest  # noqa: S311 - no secret
