"""What a database says of the tables in it: two that say the same are made alike."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import Connection, inspect, text

_PARTITIONS = """
SELECT c.relname, pg_get_partkeydef(c.oid), pg_get_expr(c.relpartbound, c.oid), c.relkind::text,
       i.inhparent::regclass::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
WHERE n.nspname = 'headwater' AND c.relkind IN ('r', 'p') ORDER BY 1
"""
_MONTH = re.compile(r"_\d{4}_\d{2}$")
_INDEXES = "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'headwater' ORDER BY 1, 2"
_COLUMNS = """
SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default, character_maximum_length
FROM information_schema.columns WHERE table_schema = 'headwater' ORDER BY 1, 2
"""


def described(connection: Connection) -> list[Any]:
    """Without the order of columns, which is another in tables that were changed, and without partitions of months."""
    match connection.dialect.name:
        case "postgresql":
            return [_selected(connection, each) for each in (_PARTITIONS, _INDEXES, _COLUMNS)]
        case "sqlite":
            return [_sqlite(connection, name) for name in sorted(inspect(connection).get_table_names())]
        case _:
            return [_mysql(connection, name) for name in sorted(inspect(connection).get_table_names())]


def _selected(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connection.execute(text(query)) if not _MONTH.search(row[0])]


def _mysql(connection: Connection, name: str) -> list[str]:
    reported = connection.execute(text(f"SHOW CREATE TABLE `{name}`")).one()[1]
    return sorted(line.strip().rstrip(",") for line in re.sub(r"AUTO_INCREMENT=\d+ ", "", reported).splitlines())


def _sqlite(connection: Connection, name: str) -> list[Any]:
    columns = sorted(tuple(row)[1:] for row in connection.exec_driver_sql(f"PRAGMA table_xinfo({name})"))
    indexes = sorted(
        (
            row.name,
            row.unique,
            row.partial,
            tuple(map(tuple, connection.exec_driver_sql(f"PRAGMA index_xinfo({row.name})"))),
        )
        for row in connection.exec_driver_sql(f"PRAGMA index_list({name})")
    )
    return [name, columns, indexes]
