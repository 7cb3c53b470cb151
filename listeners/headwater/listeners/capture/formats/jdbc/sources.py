"""What a relation reads: a table by its options, or one of a catalog."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.events import Format
from headwater.events.base import StringMap
from headwater.events.jobs import SourceSchema
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.jdbc.table_refs import find_table_ref
from headwater.listeners.capture.formats.protocol import RddSource, ReadVersion, SourceRelation
from headwater.listeners.capture.formats.relations import columns_of, table_name, v2_name
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import FormatFact


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
