"""The switch-over on PostgreSQL: two schemas are renamed in one transaction.

Writers wait at a lock on their tables. When the transaction ends, PostgreSQL looks the names of their statements up
again, and they go on in the fresh tables. There the marks of their connections are missing, so they read the bus from
the offsets of those tables (`bulk.marks`). Readers wait only for the views.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection, select, text, update

from headwater.lineage.replacement.areas import AreaNames
from headwater.lineage.replacement.arrivals import MissingEvents, find_missing_events
from headwater.lineage.replacement.privileges import copy_privileges, find_followers
from headwater.lineage.replacement.state import LOCK_SECONDS, drop_state
from headwater.lineage.replacement.writer_state import take_over
from headwater.lineage.rows import KINDS
from headwater.lineage.sql.alignment_tables import ALIGNMENT_TABLES
from headwater.lineage.sql.errors import translate_errors
from headwater.lineage.sql.pip5_catalog import PIP5_DATABASES
from headwater.lineage.sql.pip5_function import NAMES
from headwater.lineage.sql.pip5_views import create_views
from headwater.lineage.sql.writer_tables import DEAD_LETTERS, EPOCHS, INGESTS, INSTANTS, MARKS, OFFSETS
from headwater.lineage.store import StoreOptions
from headwater.lineage.store.engines import open_engine

_ORDER: Final = (
    MARKS.name,
    EPOCHS.name,
    *(kind.name for kind in KINDS),
    *(table.name for table in (DEAD_LETTERS, INGESTS, OFFSETS, INSTANTS, *ALIGNMENT_TABLES)),
)
"""The order in which a writer's transaction comes to its tables, so that none waits for another in a circle."""
_GRACE_SECONDS: Final = 60


class PostgresSwitchOver:
    def __init__(self, options: StoreOptions) -> None:
        self._target = options.target
        self._names = AreaNames.of(options)

    def recover(self) -> None:
        """Do nothing: a transaction that was interrupted left nothing."""

    def followers(self) -> Sequence[str]:
        with self._connection() as connection:
            return find_followers(connection, self._names.live)

    @contextmanager
    def fence(self, seconds: float) -> Generator[PostgresFence]:
        with self._connection() as connection:
            connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"))
            idle = int(seconds) + _GRACE_SECONDS
            connection.execute(text(f"SET LOCAL idle_in_transaction_session_timeout = '{idle}s'"))
            tables = ", ".join(f"{self._names.live}.{name}" for name in _ORDER)
            connection.execute(text(f"LOCK TABLE {tables} IN EXCLUSIVE MODE"))
            yield PostgresFence(connection, self._names, self._target.database)

    @contextmanager
    def _connection(self) -> Generator[Connection]:
        """Open a connection that commits nothing by itself."""
        target = self._target
        with open_engine(target) as engine, translate_errors(target.words), engine.connect() as connection:
            yield connection


class PostgresFence:
    """The transaction that has the locks."""

    def __init__(self, connection: Connection, names: AreaNames, views: str) -> None:
        self._connection = connection
        self._live, self._fresh, self._former = names
        self._views = views

    def missing_events(self) -> list[MissingEvents]:
        return find_missing_events(self._connection, self._live, self._fresh)

    def switch(self) -> None:
        run = self._connection
        has_views = PIP5_DATABASES.c.name == self._views
        is_shown = run.execute(select(PIP5_DATABASES.c.definition).where(has_views)).scalar() is not None
        take_over(run, self._live, self._fresh)
        copy_privileges(run, self._live, self._fresh)
        drop_state(run, self._fresh)
        run.execute(text(f"ALTER SCHEMA {self._live} RENAME TO {self._former}"))
        run.execute(text(f"ALTER SCHEMA {self._fresh} RENAME TO {self._live}"))
        if is_shown:
            self._move_views()
        run.commit()

    def _move_views(self) -> None:
        """Make the views anew over the tables that have the names now; rights on the views stay."""
        run = self._connection
        run.execute(update(PIP5_DATABASES).values(definition=None))
        moved = f"ALTER FUNCTION {self._former}.{NAMES}(text) SET search_path = {self._former}, pg_temp"
        names = [row.name for row in run.execute(select(PIP5_DATABASES.c.name))]
        run.execute(text(moved))
        for name in names:
            create_views(run, name)
