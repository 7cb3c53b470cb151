"""Which table of which database the options of a reader or writer name, and what of them may be recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headwater.events import DatasetId
from headwater.events.identity import (
    Environment,
    IdentityError,
    JdbcDatabase,
    Unknown,
    dataset_of_source,
    jdbc_database,
    jdbc_table,
)
from headwater.events.identity.text import lower_keys

_REPORTED_OPTIONS: Final = frozenset(
    {
        "batchsize",
        "cascadetruncate",
        "createtablecolumntypes",
        "createtableoptions",
        "customschema",
        "driver",
        "fetchsize",
        "isolationlevel",
        "lowerbound",
        "numpartitions",
        "partitioncolumn",
        "prefertimestampntz",
        "pushdownaggregate",
        "pushdownlimit",
        "pushdownoffset",
        "pushdownpredicate",
        "pushdowntablesample",
        "querytimeout",
        "truncate",
        "upperbound",
    }
)
"""Options that are recorded. Whatever else there is, the driver of the database gets, and that is where secrets are."""
_ASSUMED: Final = "assumed"
_TABLE_OPTIONS: Final = frozenset({"url", "dbtable", "query", "user"})


@dataclass(frozen=True)
class JdbcTableRef:
    """A table, or what is known of something that isn't one."""

    dataset: DatasetId | None
    opaque: str | None
    options: Mapping[str, str]


def find_table_ref(options: Mapping[str, str], environment: Environment) -> JdbcTableRef:
    """A query may read any table: its text is all that is known of it. (No quotes in what is opaque: it is recorded
    without literals.)"""
    given = lower_keys(options)
    reported = {key: text for key, text in given.items() if key in _REPORTED_OPTIONS}
    url, table, query = given.get("url", ""), given.get("dbtable", ""), given.get("query")
    try:
        found = Unknown(reason="", query=True) if query else jdbc_table(url, table, environment, given)
    except IdentityError:
        return JdbcTableRef(None, "a table of an unknown database", reported)
    if isinstance(found, Unknown):
        return JdbcTableRef(None, f"{query or table} in {_dataset_of_url(url, environment, given)}", reported)
    assumed = {_ASSUMED: ", ".join(found.assumed)} if found.assumed else {}
    return JdbcTableRef(found.dataset, None, {**reported, **assumed})


def reported_table_options(options: Mapping[str, str]) -> dict[str, str]:
    """Those of a table that was made USING jdbc: also where its rows are."""
    return {key: text for key, text in lower_keys(options).items() if key in _REPORTED_OPTIONS or key in _TABLE_OPTIONS}


def dataset_of_table(options: Mapping[str, str], environment: Environment) -> DatasetId | None:
    """Of a table that was made USING jdbc."""
    found = dataset_of_source("jdbc", options, environment).datasets
    return found[0] if len(found) == 1 else None


def _dataset_of_url(url: str, environment: Environment, options: Mapping[str, str]) -> str:
    try:
        found = jdbc_database(url, environment, options)
    except IdentityError:
        return "a database"
    if not isinstance(found, JdbcDatabase):
        return "a database in this process"
    return found.namespace if found.database is None else f"{found.namespace}/{found.database}"
