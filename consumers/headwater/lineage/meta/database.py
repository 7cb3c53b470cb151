"""Rows in a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from sqlalchemy import Connection, Engine, Select

from headwater.events.clock import moment_of
from headwater.lineage.bulk import DatabaseBulkMeta, Work
from headwater.lineage.entities import DataLineage, TableLineage
from headwater.lineage.meta.evented import EventedLineageMeta
from headwater.lineage.predicates import Predicate
from headwater.lineage.rows import Row
from headwater.lineage.sql import entities
from headwater.lineage.sql.troubles import troubles

_AT_ONCE: Final = 1_000


def _streaming(connection: Connection) -> Connection:
    """The database keeps what isn't read yet, and not this process."""
    return connection.execution_options(yield_per=_AT_ONCE)


class DatabaseLineageMeta(EventedLineageMeta):
    """For any thread. An iterator holds a connection until it has come to its end, or is closed."""

    def __init__(self, engine: Engine, catalog: str = "", where: str = "the store") -> None:
        super().__init__(catalog)
        self._engine = engine
        self._where = where
        self._bulk = DatabaseBulkMeta(engine, where)

    def close(self) -> None:
        self._engine.dispose()

    def _merge(self, rows: Iterable[Row]) -> None:
        self._bulk.merge(Work(tuple(rows)))

    def _tables(self, side: str, predicate: Predicate | None) -> Iterator[TableLineage]:
        selected = entities.tables(side, predicate, self._engine.dialect.name)
        return (TableLineage(**values) for values in self._streamed(selected))

    def _data(self, side: str, predicate: Predicate | None) -> Iterator[DataLineage]:
        selected = entities.data(side, predicate, self._engine.dialect.name)
        return (DataLineage(**values) for values in self._streamed(selected))

    def _streamed(self, selected: Select[Any]) -> Iterator[dict[str, Any]]:
        with (
            troubles(self._where),
            self._engine.connect() as connection,
            _streaming(connection).execute(selected) as result,
        ):
            for each in result.mappings():
                yield {**each, "create_time": moment_of(each["create_time"])}
