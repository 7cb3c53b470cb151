"""Which table of which database the options of a reader or writer name, and what of them may be recorded.

What a relation reads: a table by its options, or one of a catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headwater.events import DatasetId, Format
from headwater.events.base import StringMap
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
from headwater.events.jobs import SourceSchema
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.protocol import RddSource, ReadVersion, SourceRelation
from headwater.listeners.capture.formats.relations import columns_of, table_name, v2_name
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import FormatFact

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


def source(node: PlanNode, plan: Plan, context: CaptureContext) -> SourceRelation | None:
    if is_in_catalog(node):
        catalog = context.catalog(node.args["catalog"])
        name = v2_name(catalog.name, node.args["identifier"])
        dataset = context.dataset(catalog, name, None)
        shaped = SourceSchema(dataset=dataset, table=name, format=Format.JDBC, columns=columns_of(plan, node.output))
        return SourceRelation(node.index, shaped)
    options = options_of(node)
    if options is None:
        return None
    ref, table = find_table_ref(options, context.environment), table_name(node.args.get("catalogTable"))
    shaped = SourceSchema(
        dataset=ref.dataset,
        opaque=ref.opaque if table is None else None,
        table=table,
        format=Format.JDBC,
        columns=columns_of(plan, node.output),
        options=StringMap(ref.options),
    )
    return SourceRelation(node.index, shaped)


def sources_of_rdd(fact: FormatFact, context: CaptureContext) -> tuple[RddSource, ...]:
    """The table that an RDD of a database reads; of a query nobody knows the tables."""
    ref = find_table_ref(fact["jdbc"], context.environment)
    if ref.dataset is None:
        return ()
    source = SourceSchema(dataset=ref.dataset, format=Format.JDBC, options=StringMap(ref.options))
    return (RddSource(source, ReadVersion()),)


def is_in_catalog(node: PlanNode) -> bool:
    table = node.args.get("table")
    return bool(node.args.get("catalog")) and isinstance(table, Mapping) and "jdbc" in table


def options_of(node: PlanNode) -> Mapping[str, str] | None:
    """Of a v1 relation; None where it is none of a database."""
    relation = node.args.get("relation")
    if node.name != "LogicalRelation" or not isinstance(relation, Mapping):
        return None
    found: Mapping[str, str] | None = relation.get("jdbc")
    return found
