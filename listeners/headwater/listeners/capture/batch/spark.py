"""Spark's own commands that write, of the first kind and of V2, as things that are read from a plan's shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from headwater.events import CommitKind, Extent, FieldPath, Format, ShapedSink
from headwater.events.identity import IdentityError, dataset_of_path
from headwater.listeners.capture.commands import Command, Part, Write
from headwater.listeners.capture.formats import all_formats
from headwater.listeners.capture.formats.protocol import Target, WritesParts
from headwater.listeners.capture.formats.relations import columns_of, v2_name
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene


def sink_of(node: Node, plan: Plan, scene: Scene) -> Target | None:
    """What some format says that this node writes."""
    for each in all_formats():
        found = each.sink(node, plan, scene)
        if found is not None:
            return found
    return None


def in_parts(node: Node, plan: Plan, scene: Scene) -> Write | None:
    """Of a format that may write into several datasets at once."""
    told = (each.parts(node, plan, scene) for each in all_formats() if isinstance(each, WritesParts))
    found = next((parts for parts in told if parts), None)
    return None if found is None else Write(found)


def _relation(node: Node, plan: Plan, argument: str = "table") -> Node | None:
    """The relation an argument is, below the aliases that analysis put around it."""
    index = node.plan_of(argument)
    while index is not None and plan.nodes[index].name in {"SubqueryAlias", "View"}:
        index = plan.nodes[index].inputs[0]
    return None if index is None else plan.nodes[index]


def _v2(
    kind: CommitKind, extent: Callable[[Node, Plan, Target], Extent]
) -> Callable[[Node, Plan, Scene], Write | None]:
    """A write of a query's rows into a relation, column by column."""

    def read(node: Node, plan: Plan, scene: Scene) -> Write | None:
        relation = _relation(node, plan)
        if relation is None:
            return None
        several = in_parts(node, plan, scene)
        if several is not None:
            return several
        found = sink_of(relation, plan, scene) or _some_table(relation, plan, scene)
        if found is None:
            return None
        target = replace(found, kind=kind, replaced=extent(node, plan, found))
        query = node.plan_of("query")
        if kind is CommitKind.DELETE:
            return Write((Part(target, row_level=True),))
        if query is not None and (found.hints.get("by_name") or node.args.get("isByName")):
            return Write((Part(target, query, _by_name(relation, query, plan)),))
        names = names_in(relation, query, plan)
        return Write((Part(target, query, names),))

    return read


def _by_name(relation: Node, query: int, plan: Plan) -> tuple[FieldPath, ...]:
    """The query's own names, as the relation spells them: analysis doesn't bring all formats' queries into order."""
    spelled = {name.lower(): name for name in (plan.attribute(number).name for number in relation.output)}
    return tuple((spelled.get(name.lower(), name),) for (name,) in own_names(plan, query))


def names_in(relation: Node, query: int | None, plan: Plan) -> tuple[FieldPath, ...]:
    """The relation's columns in their order. A write that evolves the schema has more, under its own names."""
    more = () if query is None else plan.nodes[query].output[len(relation.output) :]
    return tuple((plan.attribute(number).name,) for number in (*relation.output, *more))


def _some_table(relation: Node, plan: Plan, scene: Scene) -> Target | None:
    """A table of a catalog whose format has no module here: it is told by what its catalog certainly knows."""
    if relation.name != "DataSourceV2Relation" or not relation.args.get("catalog"):
        return None
    catalog = scene.catalog(relation.args["catalog"])
    name = v2_name(catalog.name, relation.args["identifier"])
    location = relation.args.get("table", {}).get("properties", {}).get("location")
    sink = ShapedSink(
        dataset=scene.dataset(catalog, name, location),
        table=name,
        format=Format.OTHER,
        columns=columns_of(plan, relation.output),
    )
    return Target(sink, catalog, node=relation.index)


def _nothing(node: Node, plan: Plan, target: Target) -> Extent:
    return Extent.NOTHING


def _by_condition(node: Node, plan: Plan, target: Target) -> Extent:
    """A condition that is simply true replaces everything."""
    references = node.expressions_of("deleteExpr") or node.expressions_of("condition")
    if not references or references[0] < 0:
        return Extent.PART
    condition = plan.expressions[references[0]]
    return Extent.ALL if condition.name == "Literal" and condition.details.get("value") is True else Extent.PART


def _dynamic(node: Node, plan: Plan, target: Target) -> Extent:
    """Without partitions the one there is, is replaced."""
    return Extent.PART if target.sink.partitioning else Extent.ALL


def _part(node: Node, plan: Plan, target: Target) -> Extent:
    return Extent.PART


def _row_level(kind: CommitKind) -> Callable[[Node, Plan, Scene], Write | None]:
    """ReplaceData and WriteDelta: what an UPDATE, DELETE or MERGE became. Which one, the format's commit says."""

    def read(node: Node, plan: Plan, scene: Scene) -> Write | None:
        relation = _relation(node, plan, "originalTable") or _relation(node, plan)
        found = None if relation is None else sink_of(relation, plan, scene)
        if found is None:
            return None
        target = replace(found, kind=kind, replaced=Extent.PART)
        return Write((Part(target, node.plan_of("query"), row_level=True),))

    return read


def _made_by_query(node: Node, plan: Plan, scene: Scene) -> Write | None:
    """CREATE TABLE AS SELECT, in all its kinds."""
    found = sink_of(node, plan, scene)
    query = node.plan_of("query")
    if found is None or query is None:
        return None
    target = replace(found, kind=CommitKind.CREATE, replaced=Extent.ALL)
    names = node.args.get("outputColumnNames") or [plan.attribute(each).name for each in plan.nodes[query].output]
    return Write((Part(_with_columns(target, plan, query), query, tuple((name,) for name in names)),))


def _with_columns(target: Target, plan: Plan, query: int) -> Target:
    if target.sink.columns:
        return target
    return replace(target, sink=target.sink.model_copy(update={"columns": columns_of(plan, plan.nodes[query].output)}))


def _files(node: Node, plan: Plan, scene: Scene) -> Write | None:
    found = sink_of(node, plan, scene)
    query = node.plan_of("query")
    if found is None:
        return None
    names: Iterable[str] = node.args.get("outputColumnNames") or ()
    return Write((Part(found, query, tuple((name,) for name in names)),))


def _into_source(node: Node, plan: Plan, scene: Scene) -> Write | None:
    """`df.write.format(…).save()` to a source of the first kind."""
    several = in_parts(node, plan, scene)
    if several is not None:
        return several
    found = sink_of(node, plan, scene) or _some_source(node, scene)
    query = node.plan_of("query")
    if found is None or query is None:
        return None
    overwrite = node.args.get("mode") == "Overwrite"
    kind = CommitKind.OVERWRITE if overwrite else CommitKind.APPEND
    if found.kind is CommitKind.UNKNOWN:
        found = replace(found, kind=kind, replaced=Extent.ALL if overwrite else Extent.NOTHING)
    return Write((Part(_with_columns(found, plan, query), query, own_names(plan, query)),))


def own_names(plan: Plan, query: int) -> tuple[tuple[str], ...]:
    return tuple((plan.attribute(number).name,) for number in plan.nodes[query].output)


def _some_source(node: Node, scene: Scene) -> Target | None:
    """A source that no format here knows: its path, if it has one, is the dataset."""
    options: Mapping[str, Any] = node.args.get("options", {})
    path = options.get("path")
    if not path:
        return None
    try:
        dataset = dataset_of_path(path, scene.site)
    except IdentityError:
        return None
    return Target(ShapedSink(dataset=dataset, format=Format.OTHER))


def _directory(node: Node, plan: Plan, scene: Scene) -> Write | None:
    """INSERT OVERWRITE DIRECTORY."""
    location = node.args.get("storage", {}).get("location")
    query = node.plan_of("query")
    if location is None or query is None:
        return None
    from headwater.listeners.capture.formats.files.places import format_of  # noqa: PLC0415 - both name each other's types

    sink = ShapedSink(
        dataset=dataset_of_path(location, scene.site),
        format=format_of(node.args.get("provider") or "hive"),
        columns=columns_of(plan, plan.nodes[query].output),
    )
    extent = Extent.ALL if node.args.get("overwrite", True) else Extent.NOTHING
    return Write((Part(Target(sink, kind=CommitKind.OVERWRITE, replaced=extent), query, own_names(plan, query)),))


COMMANDS: Final[Mapping[str, Command]] = {
    "AppendData": Command(_v2(CommitKind.APPEND, _nothing)),
    "OverwriteByExpression": Command(_v2(CommitKind.OVERWRITE, _by_condition)),
    "OverwritePartitionsDynamic": Command(_v2(CommitKind.OVERWRITE, _dynamic)),
    "ReplaceData": Command(_row_level(CommitKind.OVERWRITE)),
    "WriteDelta": Command(_row_level(CommitKind.OVERWRITE)),
    "DeleteFromTable": Command(_v2(CommitKind.DELETE, _by_condition)),
    "DeleteFromTableWithFilters": Command(_v2(CommitKind.DELETE, _part)),
    "CreateTableAsSelect": Command(_made_by_query),
    "ReplaceTableAsSelect": Command(_made_by_query),
    "CreateDataSourceTableAsSelectCommand": Command(_made_by_query),
    "CreateHiveTableAsSelectCommand": Command(_made_by_query),
    "OptimizedCreateHiveTableAsSelectCommand": Command(_made_by_query),
    "InsertIntoHadoopFsRelationCommand": Command(_files),
    "InsertIntoHiveTable": Command(_files),
    "InsertIntoDataSourceCommand": Command(_into_source),
    "SaveIntoDataSourceCommand": Command(_into_source),
    "InsertIntoDataSourceDirCommand": Command(_directory),
    "InsertIntoHiveDirCommand": Command(_directory),
}
