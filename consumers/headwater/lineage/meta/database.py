"""`LineageMeta` in a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from sqlalchemy import Connection, Engine, Select

from headwater.events.clock import moment_of
from headwater.lineage.api import DataLineage, TableLineage
from headwater.lineage.bulk import DatabaseBulkMeta, WriteBatch
from headwater.lineage.meta.event_based import EventBasedLineageMeta
from headwater.lineage.predicates import Predicate
from headwater.lineage.rows import Row
from headwater.lineage.sql import entity_queries as entities
from headwater.lineage.sql.errors import translate_errors

_AT_ONCE: Final = 1_000


def _streaming(connection: Connection) -> Connection:
    """Fetch rows in portions, so that a large result doesn't have to fit into memory."""
    return connection.execution_options(yield_per=_AT_ONCE)


class DatabaseLineageMeta(EventBasedLineageMeta):
    """A `LineageMeta` in a database, for any thread. An iterator holds a connection until it ends or is closed."""

    def __init__(self, engine: Engine, catalog: str = "", where: str = "the store") -> None:
        super().__init__(catalog)
        self._engine = engine
        self._where = where
        self._bulk = DatabaseBulkMeta(engine, where)

    def close(self) -> None:
        self._engine.dispose()

    def _merge(self, rows: Iterable[Row]) -> None:
        self._bulk.merge(WriteBatch(tuple(rows)))

    def _tables(self, side: str, predicate: Predicate | None) -> Iterator[TableLineage]:
        selected = entities.select_table_entities(side, predicate, self._engine.dialect.name)
        return (TableLineage(**values) for values in self._streamed(selected))

    def _data(self, side: str, predicate: Predicate | None) -> Iterator[DataLineage]:
        selected = entities.select_data_entities(side, predicate, self._engine.dialect.name)
        return (DataLineage(**values) for values in self._streamed(selected))

    def _streamed(self, selected: Select[Any]) -> Iterator[dict[str, Any]]:
        with (
            translate_errors(self._where),
            self._engine.connect() as connection,
            _streaming(connection).execute(selected) as result,
        ):
            for row in result.mappings():
                yield {**row, "create_time": moment_of(row["create_time"])}
