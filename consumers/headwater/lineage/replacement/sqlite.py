"""The switch-over on SQLite: one transaction replaces the content of all tables.

Renaming the file wouldn't do: who has it open would go on with the old one. The transaction takes as long as copying
the fresh file does; readers see the old content until it ends, writers wait.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from typing import Final

from sqlalchemy import Connection, inspect, text

from headwater.lineage.bulk.marks import read_replacements
from headwater.lineage.replacement.areas import Area, area_name, drop_area, has_area
from headwater.lineage.replacement.arrivals import MissingEvents, find_missing_events, take_over
from headwater.lineage.sql import METADATA
from headwater.lineage.sql.errors import translate_errors
from headwater.lineage.sql.locking import WRITES
from headwater.lineage.sql.pip5_catalog import PIP5_DATABASES
from headwater.lineage.sql.writer_tables import MARKS
from headwater.lineage.store import StoreOptions
from headwater.lineage.store.engines import open_engine

_LIVE: Final = "main"
_FRESH: Final = "fresh"
_TABLES: Final = tuple(name for name in METADATA.tables if name != PIP5_DATABASES.name)


class SQLiteSwitchOver:
    def __init__(self, options: StoreOptions) -> None:
        self._options = options
        self._target = options.target
        self._path = area_name(options.beside(Area.FRESH.value).target)

    def recover(self) -> None:
        """Remove the copy of the live tables if they weren't replaced after that; else the fresh file, which they have.

        Each replacement is counted in the file that was replaced. A copy that wasn't finished has no tables.
        """
        if not (has_area(self._options, Area.FORMER) and has_area(self._options, Area.FRESH)):
            return
        now, before = (_replacements(each) for each in (self._options, self._options.beside(Area.FORMER.value)))
        is_replaced = now is not None and before is not None and now > before
        drop_area(self._options, Area.FRESH if is_replaced else Area.FORMER)

    def followers(self) -> Sequence[str]:
        """Everything is in the file, and stays there."""
        return ()

    @contextmanager
    def fence(self, seconds: float) -> Generator[SQLiteFence]:  # noqa: ARG002 - a transaction has no limit of time here
        target = self._target
        with open_engine(target) as engine, translate_errors(target.words), engine.connect() as connection:
            writing = connection.execution_options(**{WRITES: True})
            writing.exec_driver_sql("SELECT count(*) FROM main.writer_marks")  # which begins the transaction
            yield SQLiteFence(writing, self._options, self._path)


class SQLiteFence:
    """The transaction that has the file's write lock."""

    def __init__(self, connection: Connection, options: StoreOptions, path: str) -> None:
        self._connection = connection
        self._options = options
        self._path = path

    def missing_events(self) -> list[MissingEvents]:
        """Attach the fresh file, too. Before that a lock would keep the rest from being read into it."""
        self._connection.exec_driver_sql("ATTACH DATABASE ? AS fresh", (self._path,))
        return find_missing_events(self._connection, _LIVE, _FRESH)

    def switch(self) -> None:
        self._save_former()
        take_over(self._connection, _LIVE, _FRESH)
        for name in _TABLES:
            _replace_rows(self._connection, name, _FRESH, _LIVE)
        self._connection.commit()
        self._connection.exec_driver_sql("DETACH DATABASE fresh")
        drop_area(self._options, Area.FRESH)

    def _save_former(self) -> None:
        """Copy the live tables into a file of their own, before anything of them changes."""
        former = area_name(self._options.beside(Area.FORMER.value).target)
        live = str(self._options.target.url.database)
        with closing(sqlite3.connect(live)) as source, closing(sqlite3.connect(former)) as copy:
            source.backup(copy)


def _replacements(options: StoreOptions) -> int | None:
    with open_engine(options.target) as engine, engine.connect() as connection:
        return read_replacements(connection) if inspect(connection).has_table(MARKS.name) else None


def _replace_rows(connection: Connection, table: str, source: str, target: str) -> None:
    names = ", ".join(f'"{column.name}"' for column in METADATA.tables[table].c)
    connection.execute(text(f'DELETE FROM {target}."{table}"'))  # noqa: S608 - names of ours
    connection.execute(text(f'INSERT INTO {target}."{table}" ({names}) SELECT {names} FROM {source}."{table}"'))  # noqa: S608
