"""A JDBC url and what is read there → the table it is, by the rules of the database behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from headwater.events.identity.environment import Environment
from headwater.events.identity.jdbc.dialects import (
    DIALECTS,
    Address,
    Dialect,
    Fold,
    Level,
    dialect_of,
    server_address,
    subprotocol,
)
from headwater.events.identity.jdbc.products import (
    embedded_address,
    mysql_address,
    oracle_address,
    sqlserver_address,
    srv_address,
)
from headwater.events.identity.jdbc.services import (
    bigquery_address,
    clickhouse_address,
    db2_address,
    postgres_address,
    redshift_address,
    snowflake_address,
    teradata_address,
    trino_address,
)
from headwater.events.identity.jdbc.tables import folded, parts_of, qualified, unquoted
from headwater.events.identity.paths import dataset_of_path
from headwater.events.identity.text import Unknown, dataset, joined, lower_keys, quoted, required
from headwater.events.names import DatasetId

__all__ = ["JdbcDatabase", "JdbcTable", "jdbc_database", "jdbc_identifier", "jdbc_table"]

_NOTHING: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class JdbcDatabase:
    """What a url points at. `database` and `schema` are what an unqualified table would be looked up in."""

    namespace: str
    dialect: Dialect
    fold: Fold
    database: str | None = None
    schema: str | None = None
    user: str | None = None

    @property
    def location(self) -> str:
        """The server, with the database where a connection can't leave it."""
        scoped = "schema" in self.dialect.levels and self.database
        return f"{self.namespace}/{self.database}" if scoped else self.namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class JdbcTable:
    """A table, and what of its name neither url nor `dbtable` said but the database's defaults (`schema public`)."""

    dataset: DatasetId
    assumed: tuple[str, ...] = ()


def jdbc_database(url: str, environment: Environment, options: Mapping[str, str] = _NOTHING) -> JdbcDatabase | Unknown:
    """The database of a url. `options` are the reader's, of which user and database are looked at."""
    values = lower_keys(options)
    address = _address(url, values)
    if isinstance(address, Unknown):
        return address
    dialect = address.dialect
    fold = address.fold or dialect.fold
    return JdbcDatabase(
        namespace=_namespace(address, environment),
        dialect=dialect,
        fold=fold,
        database=unquoted(address.database or "", fold if dialect.folds_database else "keep") or None,
        schema=unquoted(address.schema or "", fold) or None,
        user=values.get("user") or values.get("username"),
    )


def jdbc_table(
    url: str, dbtable: str, environment: Environment, options: Mapping[str, str] = _NOTHING
) -> JdbcTable | Unknown:
    """The table that option `dbtable` names in the SQL of its database; `Unknown` for a query."""
    database = jdbc_database(url, environment, options)
    if isinstance(database, Unknown):
        return database
    parts = parts_of(required(dbtable, "option dbtable"), database.dialect, database.fold)
    return parts if isinstance(parts, Unknown) else _table(database, parts)


def jdbc_identifier(
    url: str, parts: Sequence[str], environment: Environment, options: Mapping[str, str] = _NOTHING
) -> JdbcTable | Unknown:
    """The table of a V2 JDBC catalog, which quotes every part: nothing is folded."""
    database = jdbc_database(url, environment, options)
    if isinstance(database, Unknown):
        return database
    exact = [required(part, "a part of the table's name") for part in parts]
    folds = database.dialect.folds_quoted
    return _table(database, [folded(part, database.fold) if folds else part for part in exact])


def _table(database: JdbcDatabase, parts: Sequence[str]) -> JdbcTable | Unknown:
    known: dict[Level, str | None] = {"database": database.database, "schema": database.schema}
    full = qualified(parts, database.dialect, known, database.user, database.fold)
    if isinstance(full, Unknown):
        return full
    names, assumed = full
    name = joined(names) if database.dialect.levels else ".".join(map(quoted, names))
    return JdbcTable(dataset=dataset(database.namespace, name), assumed=assumed)


def _namespace(address: Address, environment: Environment) -> str:
    scheme = address.dialect.name
    if address.file is not None:
        home = environment.derby_home if scheme == "derby" else None
        path = f"{home}/{address.file}" if home and not address.file.startswith("/") else address.file
        file = dataset_of_path(path, replace(environment, default_filesystem="file:///"))
        return f"{scheme}{file.namespace.removeprefix('file')}{file.name}"
    if address.service is not None:
        return f"{scheme}://{address.service}" if address.service else scheme
    return f"{scheme}://{environment.authority(address.places)}{address.suffix}"


def _address(url: str, values: Mapping[str, str]) -> Address | Unknown:
    name, rest = subprotocol(url)
    if name in _WITH_SETTINGS:
        return _WITH_SETTINGS[name](rest, DIALECTS[name], values)
    if name in _READERS:
        return _READERS[name](rest, DIALECTS[name])
    if name == "mysql+srv":
        return srv_address(rest, DIALECTS["mysql"])
    if name in {"jtds", "microsoft"} and rest.lower().startswith("sqlserver:"):
        return sqlserver_address(rest[len("sqlserver:") :], DIALECTS["sqlserver"], values)
    return _by_the_general_rule(name, rest, values)


def _by_the_general_rule(name: str, rest: str, values: Mapping[str, str]) -> Address:
    address, settings = server_address(rest, dialect_of(name))
    database = address.database or settings.get("databasename") or settings.get("database")
    return replace(address, database=database or values.get("databasename"))


_WITH_SETTINGS = {
    "sqlserver": sqlserver_address,
    "mssql": sqlserver_address,
    "snowflake": snowflake_address,
    "bigquery": bigquery_address,
}
_READERS = {
    "postgresql": postgres_address,
    "postgres": postgres_address,
    "redshift": redshift_address,
    "mysql": mysql_address,
    "mariadb": mysql_address,
    "oracle": oracle_address,
    "db2": db2_address,
    "trino": trino_address,
    "presto": trino_address,
    "clickhouse": clickhouse_address,
    "ch": clickhouse_address,
    "teradata": teradata_address,
    "sqlite": embedded_address,
    "h2": embedded_address,
    "hsqldb": embedded_address,
    "derby": embedded_address,
}
