"""Spark's own commands that write, of v1 and of V2, as things that are read from a plan's shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from headwater.events import Format
from headwater.events.identity import IdentityError, dataset_of_path
from headwater.events.jobs import CommitKind, OverwriteScope, SinkSchema
from headwater.events.scalars import FieldPath
from headwater.listeners.capture.asking import answers
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats import FormatPlugin
from headwater.listeners.capture.formats.files.locations import format_of
from headwater.listeners.capture.formats.protocol import MultiSinkFormat, SinkWrite, StatementWrites, WriteTarget
from headwater.listeners.capture.formats.relations import columns_of, v2_name
from headwater.listeners.capture.plan.tree import Plan, PlanNode


def find_sink(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
    """What some format says that this node writes."""
    found = next(answers(plan, lambda plugin: plugin.reader.sink(node, plan, context)), None)
    return None if found is None else found[0]


def find_sinks(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """Of a format that may write into several datasets at once."""

    def sinks(plugin: FormatPlugin) -> tuple[SinkWrite, ...] | None:
        reader = plugin.reader
        return (reader.sinks(node, plan, context) or None) if isinstance(reader, MultiSinkFormat) else None

    found = next(answers(plan, sinks), None)
    return None if found is None else StatementWrites(found[0])


def _find_relation(node: PlanNode, plan: Plan, argument: str = "table") -> PlanNode | None:
    """The relation an argument is, below the aliases that analysis put around it."""
    index = node.plan_of(argument)
    while index is not None and plan.nodes[index].name in {"SubqueryAlias", "View"}:
        index = plan.nodes[index].inputs[0]
    return None if index is None else plan.nodes[index]


def _v2_write(
    kind: CommitKind, extent: Callable[[PlanNode, Plan, WriteTarget], OverwriteScope]
) -> Callable[[PlanNode, Plan, CaptureContext], StatementWrites | None]:
    """A write of a query's rows into a relation, column by column."""

    def read(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
        relation = _find_relation(node, plan)
        if relation is None:
            return None
        several = StatementWrites(()) if _is_noop(relation) else find_sinks(node, plan, context)
        if several is not None:
            return several
        found = find_sink(relation, plan, context) or _table_of_other_format(relation, plan, context)
        if found is None:
            return None
        target = replace(found, kind=kind, replaced=extent(node, plan, found))
        query = node.plan_of("query")
        if kind is CommitKind.DELETE:
            return StatementWrites((SinkWrite(target, row_level=True),))
        if query is not None and (found.hints.get("by_name") or node.args.get("isByName")):
            return StatementWrites((SinkWrite(target, query, _columns_by_name(relation, query, plan)),))
        names = column_order(relation, query, plan)
        return StatementWrites((SinkWrite(target, query, names),))

    return read


def _is_noop(relation: PlanNode) -> bool:
    """Whether it is the source that throws rows away: who writes to it wants them computed."""
    table = relation.args.get("table")
    return isinstance(table, Mapping) and str(table.get("class", "")).endswith(".NoopTable$")


def _columns_by_name(relation: PlanNode, query: int, plan: Plan) -> tuple[FieldPath, ...]:
    """The query's own names, as the relation spells them: analysis doesn't bring all formats' queries into order."""
    spelled = {name.lower(): name for name in (plan.attribute(number).name for number in relation.output)}
    return tuple((spelled.get(name.lower(), name),) for (name,) in columns_by_own_name(plan, query))


def column_order(relation: PlanNode, query: int | None, plan: Plan) -> tuple[FieldPath, ...]:
    """The relation's columns in their order. A write that evolves the schema has more, under its own names."""
    more = () if query is None else plan.nodes[query].output[len(relation.output) :]
    return tuple((plan.attribute(number).name,) for number in (*relation.output, *more))


def _table_of_other_format(relation: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
    """A table of a catalog whose format has no module here: it is recorded by what its catalog certainly knows."""
    if relation.name != "DataSourceV2Relation" or not relation.args.get("catalog"):
        return None
    catalog = context.catalog(relation.args["catalog"])
    name = v2_name(catalog.name, relation.args["identifier"])
    location = relation.args.get("table", {}).get("properties", {}).get("location")
    sink = SinkSchema(
        dataset=context.dataset(catalog, name, location),
        table=name,
        format=Format.OTHER,
        columns=columns_of(plan, relation.output),
    )
    return WriteTarget(sink, catalog, node=relation.index)


def _scope_nothing(node: PlanNode, plan: Plan, target: WriteTarget) -> OverwriteScope:
    return OverwriteScope.NOTHING


def _scope_of_condition(node: PlanNode, plan: Plan, target: WriteTarget) -> OverwriteScope:
    """A condition that is simply true replaces everything."""
    references = node.expressions_of("deleteExpr") or node.expressions_of("condition")
    if not references or references[0] < 0:
        return OverwriteScope.PART
    condition = plan.expressions[references[0]]
    return (
        OverwriteScope.ALL
        if condition.name == "Literal" and condition.details.get("value") is True
        else OverwriteScope.PART
    )


def _scope_of_dynamic_overwrite(node: PlanNode, plan: Plan, target: WriteTarget) -> OverwriteScope:
    """Without partitions the one there is, is replaced."""
    return OverwriteScope.PART if target.sink.partitioning else OverwriteScope.ALL


def _scope_of_partitions(node: PlanNode, plan: Plan, target: WriteTarget) -> OverwriteScope:
    return OverwriteScope.PART


def _row_level_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """ReplaceData and WriteDelta: what an UPDATE, DELETE or MERGE became. Which one, the table that is written says."""
    written = _find_relation(node, plan)
    relation = _find_relation(node, plan, "originalTable") or written
    found = None if relation is None else find_sink(relation, plan, context)
    if found is None:
        return None
    table = None if written is None else written.args.get("table")
    command = table.get("command") if isinstance(table, Mapping) else None
    kind = CommitKind(command) if command else CommitKind.OVERWRITE
    target = replace(found, kind=kind, replaced=OverwriteScope.PART)
    return StatementWrites((SinkWrite(target, node.plan_of("query"), row_level=True),))


def _create_as_select(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """CREATE TABLE AS SELECT, in all its kinds."""
    found = find_sink(node, plan, context)
    query = node.plan_of("query")
    if found is None or query is None:
        return None
    target = replace(found, kind=CommitKind.CREATE, replaced=OverwriteScope.ALL)
    names = node.args.get("outputColumnNames") or [
        plan.attribute(attribute).name for attribute in plan.nodes[query].output
    ]
    return StatementWrites((SinkWrite(_with_columns(target, plan, query), query, tuple((name,) for name in names)),))


def _with_columns(target: WriteTarget, plan: Plan, query: int) -> WriteTarget:
    if target.sink.columns:
        return target
    return replace(target, sink=target.sink.model_copy(update={"columns": columns_of(plan, plan.nodes[query].output)}))


def _write_files(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    found = find_sink(node, plan, context)
    query = node.plan_of("query")
    if found is None:
        return None
    names: Iterable[str] = node.args.get("outputColumnNames") or ()
    return StatementWrites((SinkWrite(found, query, tuple((name,) for name in names)),))


def _save_into_source(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """`df.write.format(…).save()` to a v1 source."""
    several = find_sinks(node, plan, context)
    if several is not None:
        return several
    found = find_sink(node, plan, context) or _other_source(node, context)
    query = node.plan_of("query")
    if found is None or query is None:
        return None
    overwrite = node.args.get("mode") == "Overwrite"
    kind = CommitKind.OVERWRITE if overwrite else CommitKind.APPEND
    if found.kind is CommitKind.UNKNOWN:
        found = replace(found, kind=kind, replaced=OverwriteScope.ALL if overwrite else OverwriteScope.NOTHING)
    return StatementWrites((SinkWrite(_with_columns(found, plan, query), query, columns_by_own_name(plan, query)),))


def columns_by_own_name(plan: Plan, query: int) -> tuple[tuple[str], ...]:
    return tuple((plan.attribute(number).name,) for number in plan.nodes[query].output)


def _other_source(node: PlanNode, context: CaptureContext) -> WriteTarget | None:
    """A source that no format here knows: its path, if it has one, is the dataset."""
    options: Mapping[str, Any] = node.args.get("options", {})
    path = options.get("path")
    if not path:
        return None
    try:
        dataset = dataset_of_path(path, context.environment)
    except IdentityError:
        return None
    return WriteTarget(SinkSchema(dataset=dataset, format=Format.OTHER))


def _write_directory(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """INSERT OVERWRITE DIRECTORY."""
    location = node.args.get("storage", {}).get("location")
    query = node.plan_of("query")
    if location is None or query is None:
        return None
    sink = SinkSchema(
        dataset=dataset_of_path(location, context.environment),
        format=format_of(node.args.get("provider") or "hive", context.formats),
        columns=columns_of(plan, plan.nodes[query].output),
    )
    extent = OverwriteScope.ALL if node.args.get("overwrite", True) else OverwriteScope.NOTHING
    return StatementWrites(
        (
            SinkWrite(
                WriteTarget(sink, kind=CommitKind.OVERWRITE, replaced=extent), query, columns_by_own_name(plan, query)
            ),
        )
    )


COMMANDS: Final[Mapping[str, CommandRule]] = {
    "AppendData": CommandRule(_v2_write(CommitKind.APPEND, _scope_nothing)),
    "OverwriteByExpression": CommandRule(_v2_write(CommitKind.OVERWRITE, _scope_of_condition)),
    "OverwritePartitionsDynamic": CommandRule(_v2_write(CommitKind.OVERWRITE, _scope_of_dynamic_overwrite)),
    "ReplaceData": CommandRule(_row_level_write),
    "WriteDelta": CommandRule(_row_level_write),
    "DeleteFromTable": CommandRule(_v2_write(CommitKind.DELETE, _scope_of_condition)),
    "DeleteFromTableWithFilters": CommandRule(_v2_write(CommitKind.DELETE, _scope_of_partitions)),
    "CreateTableAsSelect": CommandRule(_create_as_select),
    "ReplaceTableAsSelect": CommandRule(_create_as_select),
    "CreateDataSourceTableAsSelectCommand": CommandRule(_create_as_select),
    "CreateHiveTableAsSelectCommand": CommandRule(_create_as_select),
    "OptimizedCreateHiveTableAsSelectCommand": CommandRule(_create_as_select),
    "InsertIntoHadoopFsRelationCommand": CommandRule(_write_files),
    "InsertIntoHiveTable": CommandRule(_write_files),
    "InsertIntoDataSourceCommand": CommandRule(_save_into_source),
    "SaveIntoDataSourceCommand": CommandRule(_save_into_source),
    "InsertIntoDataSourceDirCommand": CommandRule(_write_directory),
    "InsertIntoHiveDirCommand": CommandRule(_write_directory),
}
