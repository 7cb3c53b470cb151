"""What is written: a table by its options, or one of a catalog, which the statement may make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import Format
from headwater.events.base import StringMap
from headwater.events.jobs import CommitKind, OverwriteScope, SinkSchema
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.external_rows import external_options
from headwater.listeners.capture.formats.files.write_results import was_created
from headwater.listeners.capture.formats.jdbc.table_refs import JdbcTableRef, find_table_ref, is_in_catalog, options_of
from headwater.listeners.capture.formats.protocol import WriteResult, WriteTarget
from headwater.listeners.capture.formats.relations import columns_of, table_name, v2_name
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import Statement

_SOURCE: Final = "org.apache.spark.sql.execution.datasources.jdbc.JdbcRelationProvider"
_CATALOG: Final = "jdbc"
_MODES: Final[Mapping[str, tuple[CommitKind, OverwriteScope]]] = {
    "Append": (CommitKind.APPEND, OverwriteScope.NOTHING),
    "Overwrite": (CommitKind.OVERWRITE, OverwriteScope.ALL),
    "ErrorIfExists": (CommitKind.CREATE, OverwriteScope.ALL),
    "Ignore": (CommitKind.CREATE, OverwriteScope.ALL),
}


def sink(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
    if node.name == "SaveIntoDataSourceCommand":
        return _save_target(node, context)
    if node.name == "InsertIntoDataSourceCommand":
        return _insert_target(node, plan, context)
    options = external_options(node, _CATALOG, context.formats)
    if options is not None:
        return _external_target(node, options, context)
    if node.name in {"CreateTableAsSelect", "ReplaceTableAsSelect"}:
        return _create_target(node, plan, context)
    return _catalog_target(node, node.args.get("identifier"), plan, context) if is_in_catalog(node) else None


def _save_target(node: PlanNode, context: CaptureContext) -> WriteTarget | None:
    if (node.args.get("dataSource") or {}).get("class") != _SOURCE:
        return None
    mode = node.args.get("mode", "")
    kind, replaced = _MODES.get(mode, (CommitKind.UNKNOWN, OverwriteScope.UNKNOWN))
    ref = find_table_ref(node.args.get("options", {}), context.environment)
    return WriteTarget(_sink_fields(ref), kind=kind, replaced=replaced, hints={"mode": mode})


def _insert_target(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
    """Into a table or view that was made USING jdbc."""
    index = node.plan_of("logicalRelation")
    options = None if index is None else options_of(plan.nodes[index])
    if index is None or options is None:
        return None
    relation = plan.nodes[index]
    kind, replaced = _MODES["Overwrite" if node.args.get("overwrite") else "Append"]
    name = table_name(relation.args.get("catalogTable"))
    ref = _sink_fields(find_table_ref(options, context.environment))
    opaque = ref.opaque if name is None else None
    columns = columns_of(plan, relation.output)
    shaped = ref.model_copy(update={"table": name, "opaque": opaque, "columns": columns})
    return WriteTarget(shaped, None if name is None else context.session_catalog(), kind, replaced, node=index)


def _external_target(node: PlanNode, options: Mapping[str, str], context: CaptureContext) -> WriteTarget:
    """A table of Spark's catalog that is made from a query, or `saveAsTable` adds to."""
    ref = _sink_fields(find_table_ref(options, context.environment))
    shaped = ref.model_copy(update={"table": table_name(node.args["table"]), "opaque": None})
    kind, replaced = _MODES["ErrorIfExists"]
    hints = {"mode": node.args.get("mode"), "in catalog": True}
    return WriteTarget(shaped, context.session_catalog(), kind, replaced, hints=hints)


def _sink_fields(ref: JdbcTableRef) -> SinkSchema:
    return SinkSchema(dataset=ref.dataset, opaque=ref.opaque, format=Format.JDBC, options=StringMap(ref.options))


def _create_target(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
    index = node.plan_of("name")
    name = None if index is None else plan.nodes[index]
    if name is None or "catalog" not in name.args or "identifier" not in name.args:
        return None
    if context.catalog(name.args["catalog"]).context.factory != _CATALOG:
        return None
    return _catalog_target(name, name.args["identifier"], plan, context)


def _catalog_target(
    node: PlanNode, identifier: Mapping[str, Any] | None, plan: Plan, context: CaptureContext
) -> WriteTarget | None:
    if identifier is None:
        return None
    catalog = context.catalog(node.args["catalog"])
    name = v2_name(catalog.name, identifier)
    shaped = SinkSchema(
        dataset=context.dataset(catalog, name, None),
        table=name,
        format=Format.JDBC,
        columns=columns_of(plan, node.output),
    )
    return WriteTarget(shaped, catalog, node=node.index)


def write_result(target: WriteTarget, statement: Statement) -> WriteResult:
    """How many rows were written, Spark doesn't count."""
    if target.hints.get("mode") == "Ignore" and "jdbc" not in statement.facts.looked_up:
        return WriteResult()  # the table was there
    kind, replaced = _result_of_create(target, statement)
    return WriteResult((target.output(commit_kind=kind, replaced=replaced),))


def _result_of_create(target: WriteTarget, statement: Statement) -> tuple[CommitKind, OverwriteScope]:
    """`saveAsTable` adds to what is there; what its catalog hasn't, it makes anew in the database too."""
    if not target.hints.get("in catalog") or target.hints.get("mode") != "Append":
        return target.kind, target.replaced
    made = was_created(statement)
    if made is None:
        return CommitKind.UNKNOWN, OverwriteScope.UNKNOWN
    return (target.kind, target.replaced) if made else _MODES["Append"]
