"""What is particular to each database: its name in identities, its port, how it folds and qualifies a table's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

Fold: TypeAlias = Literal["lower", "upper", "keep"]
Level: TypeAlias = Literal["database", "schema", "table"]

USER: Final = "{user}"
"""A default that is the connecting user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    name: str
    """The scheme of the namespace."""
    port: int | None = None
    fold: Fold = "keep"
    """What happens to an unquoted name."""
    folds_quoted: bool = False
    """Quoted names are compared without case as well."""
    folds_database: bool = False
    """The database's name in the url is compared without case."""
    levels: tuple[Level, ...] = ("database", "schema", "table")
    """The parts of a full name; empty where they aren't known."""
    defaults: Mapping[Level, str] = field(default_factory=dict[Level, str])
    """What an unqualified name most likely means; recorded as an assumption."""
    quotes: str = '"`'
    dashes: bool = False
    """Unquoted names may hold hyphens."""


def _dialects() -> dict[str, Dialect]:
    two: tuple[Level, ...] = ("database", "table")
    inner: tuple[Level, ...] = ("schema", "table")
    postgres = Dialect(name="postgres", port=5432, fold="lower", defaults={"schema": "public"})
    mysql = Dialect(name="mysql", port=3306, levels=two)
    mssql = Dialect(name="mssql", port=1433, defaults={"schema": "dbo"}, quotes='"[')
    h2 = Dialect(name="h2", port=9092, fold="upper", levels=inner, defaults={"schema": "PUBLIC"})
    trino = Dialect(name="trino", fold="lower", folds_quoted=True, folds_database=True)
    clickhouse = Dialect(name="clickhouse", port=8123, levels=two, defaults={"database": "default"})
    hive2 = Dialect(
        name="hive2", port=10000, fold="lower", folds_quoted=True, levels=two, defaults={"database": "default"}
    )
    return {
        "postgresql": postgres,
        "postgres": postgres,
        "redshift": Dialect(name="redshift", port=5439, fold="lower", defaults={"schema": "public"}),
        "crate": Dialect(name="crate", port=5432, fold="lower", defaults={"database": "crate", "schema": "doc"}),
        "vertica": Dialect(name="vertica", port=5433, defaults={"schema": "public"}),
        "mysql": mysql,
        "mariadb": mysql,
        "oceanbase": Dialect(name="oceanbase", port=2881, levels=two),
        "sqlserver": mssql,
        "mssql": mssql,
        "oracle": Dialect(name="oracle", port=1521, fold="upper", folds_database=True, defaults={"schema": USER}),
        # 446 is the driver's own default; a server on 50000 has to be named with its port anyway.
        "db2": Dialect(name="db2", port=446, fold="upper", folds_database=True, defaults={"schema": USER}),
        "snowflake": Dialect(name="snowflake", fold="upper", folds_database=True),
        "bigquery": Dialect(name="bigquery", quotes="`", dashes=True),
        "trino": trino,
        "presto": Dialect(name="presto", fold="lower", folds_quoted=True, folds_database=True),
        "clickhouse": clickhouse,
        "ch": clickhouse,
        "teradata": Dialect(
            name="teradata",
            port=1025,
            fold="upper",
            folds_quoted=True,
            folds_database=True,
            levels=two,
            defaults={"database": USER},
        ),
        "cassandra": Dialect(name="cassandra", port=9042, fold="lower", levels=two),
        "hive2": hive2,
        "sqlite": Dialect(
            name="sqlite", fold="lower", folds_quoted=True, levels=inner, defaults={"schema": "main"}, quotes='"`['
        ),
        "h2": h2,
        "hsqldb": Dialect(name="hsqldb", port=9001, fold="upper", levels=inner, defaults={"schema": "PUBLIC"}),
        "derby": Dialect(name="derby", port=1527, fold="upper", levels=inner, defaults={"schema": USER}),
    }


DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType(_dialects())


def dialect_of(subprotocol: str) -> Dialect:
    """A database without rules of its own is named by its subprotocol, and its names are kept as they are."""
    known = DIALECTS.get(subprotocol)
    return known or Dialect(name=subprotocol, levels=())
