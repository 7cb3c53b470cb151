"""Puts fresh tables in the place of a store's live ones, while writers and readers go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol

from sqlalchemy import Engine

from headwater.lineage.replacement.arrivals import MissingEvents
from headwater.lineage.replacement.mariadb import MariaDBSwitchOver
from headwater.lineage.replacement.postgresql import PostgresSwitchOver
from headwater.lineage.replacement.sqlite import SQLiteSwitchOver
from headwater.lineage.sql.locking import WRITES
from headwater.lineage.sql.pip5_dialects import pip5_dialect_of
from headwater.lineage.store import StoreOptions
from headwater.lineage.store.creation import has_views
from headwater.lineage.store.engines import open_engine
from headwater.lineage.store.urls import DatabaseKind


class Fence(Protocol):
    """The time in which no writer of the live store commits."""

    def missing_events(self) -> list[MissingEvents]:
        """Return the events that the live tables have and the fresh ones lack."""
        ...

    def switch(self) -> None:
        """Put the fresh tables in the place of the live ones, which become the former ones. All of it happens, or
        nothing."""
        ...


class SwitchOver(Protocol):
    """The switch-over of one database."""

    def recover(self) -> None:
        """Finish a switch-over that was interrupted, or remove what it left. Most databases leave nothing to do."""
        ...

    def followers(self) -> Sequence[str]:
        """Return what uses the live tables and wouldn't follow to the fresh ones."""
        ...

    def fence(self, seconds: float) -> AbstractContextManager[Fence]:
        """Let writers wait for at most so many seconds, if nothing goes wrong. Raises StoreBusyError if somebody uses
        the tables for too long. Without `switch` nothing has changed afterwards."""
        ...


_WAYS: Final[dict[DatabaseKind, Callable[[StoreOptions], SwitchOver]]] = {
    DatabaseKind.POSTGRESQL: PostgresSwitchOver,
    DatabaseKind.MYSQL: MariaDBSwitchOver,
    DatabaseKind.SQLITE: SQLiteSwitchOver,
}


def switch_over_for(options: StoreOptions) -> SwitchOver:
    """Return the switch-over of a store's database."""
    return _WAYS[options.target.kind](options)


def make_view_indexes(options: StoreOptions, fresh: Engine) -> None:
    """Make the indexes that the PIP-5 views need, if the store has such views: that takes a while, and nobody waits
    for it."""
    target = options.target
    with open_engine(target) as engine:
        is_wanted = has_views(engine, target)
    if not is_wanted:
        return
    with fresh.connect().execution_options(**{WRITES: True}) as connection, connection.begin():
        for statement in list(pip5_dialect_of(connection, target.database).indexes()):
            connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
