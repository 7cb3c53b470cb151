"""Which table of which database the options of a reader or writer name, and what of them may be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headwater.events import DatasetId
from headwater.events.identity import IdentityError, JdbcDatabase, Site, Unknown, jdbc_database, jdbc_table
from headwater.events.identity.text import lower_keys

_TOLD: Final = frozenset(
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
"""Options that are told. Whatever else there is, the driver of the database gets, and that is where secrets are."""
_ASSUMED: Final = "assumed"
_OF_TABLE: Final = frozenset({"url", "dbtable", "query", "user"})


@dataclass(frozen=True)
class Place:
    """A table, or what is known of something that isn't one."""

    dataset: DatasetId | None
    opaque: str | None
    options: Mapping[str, str]


def place_of(options: Mapping[str, str], site: Site) -> Place:
    """A query may read any table: its text is all that is known of it. (No quotes in what is opaque: it is told without
    literals.)"""
    given = lower_keys(options)
    told = {key: text for key, text in given.items() if key in _TOLD}
    url, table, query = given.get("url", ""), given.get("dbtable", ""), given.get("query")
    try:
        found = Unknown(reason="", query=True) if query else jdbc_table(url, table, site, given)
    except IdentityError:
        return Place(None, "a table of an unknown database", told)
    if isinstance(found, Unknown):
        return Place(None, f"{query or table} in {_where(url, site, given)}", told)
    assumed = {_ASSUMED: ", ".join(found.assumed)} if found.assumed else {}
    return Place(found.dataset, None, {**told, **assumed})


def told_of_table(options: Mapping[str, str]) -> dict[str, str]:
    """Those of a table that was made USING jdbc: also where its rows are."""
    return {key: text for key, text in lower_keys(options).items() if key in _TOLD or key in _OF_TABLE}


def _where(url: str, site: Site, options: Mapping[str, str]) -> str:
    try:
        found = jdbc_database(url, site, options)
    except IdentityError:
        return "a database"
    if not isinstance(found, JdbcDatabase):
        return "a database in this process"
    return found.namespace if found.database is None else f"{found.namespace}/{found.database}"
