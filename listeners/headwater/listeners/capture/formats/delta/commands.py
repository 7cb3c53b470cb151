"""Delta's own commands: what each writes and reads, and what it does to a catalog. All of the jar's are here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from headwater.events import CommitKind, Extent
from headwater.listeners.capture.commands import Command, Part, Write
from headwater.listeners.capture.formats.delta.ddl import altered_by, converted_by, created_by
from headwater.listeners.capture.formats.delta.places import Place, place_of, relation_below
from headwater.listeners.capture.formats.delta.sinks import converted_target, made_target, sink_of, target_at
from headwater.listeners.capture.formats.protocol import Target
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene

_NO_TABLE: Final = frozenset({"LocalRelation", "OneRowRelation", "Range", "CommandResult", "CTERelationRef"})


def _row_level(node: Node, plan: Plan, scene: Scene) -> Write | None:
    """MERGE, UPDATE and DELETE read what they write."""
    relation = relation_below(plan, node.plan_of("target"))
    target = None if relation is None else sink_of(relation, plan, scene)
    if relation is None or target is None:
        return None
    source = node.plan_of("source")
    read = [] if source is None else [each.index for each in plan.below(source) if _is_table(each)]
    return Write((Part(target, row_level=True),), (*read, relation.index))


def _is_table(node: Node) -> bool:
    return not node.inputs and node.name not in _NO_TABLE


def _of_table(*, reads: bool) -> Callable[[Node, Plan, Scene], Write | None]:
    """Commands about a table as a whole, which is their child or an argument."""

    def read(node: Node, plan: Plan, scene: Scene) -> Write | None:
        found = table_of_command(node, plan)
        if found is None:
            return None
        relation, place = found
        return Write((Part(target_at(place, relation, scene)),), (relation.index,) if reads else ())

    return read


def table_of_command(node: Node, plan: Plan) -> tuple[Node, Place] | None:
    for argument in ("child", "table", "target"):
        relation = relation_below(plan, node.plan_of(argument))
        place = None if relation is None else place_of(relation, plan)
        if relation is not None and place is not None:
            return relation, place
    place = place_of(node, plan)
    return None if place is None else (node, place)


def _dynamic(node: Node, plan: Plan, scene: Scene) -> Write | None:
    """INSERT OVERWRITE where the session overwrites dynamically: the rows say which partitions are replaced."""
    relation, query = relation_below(plan, node.plan_of("table")), node.plan_of("query")
    target = None if relation is None else sink_of(relation, plan, scene)
    if relation is None or target is None or query is None:
        return None
    more = plan.nodes[query].output[len(relation.output) :]
    names = tuple((plan.attribute(number).name,) for number in (*relation.output, *more))
    return Write((Part(replace(target, kind=CommitKind.OVERWRITE, replaced=Extent.PART), query, names),))


def _created(node: Node, plan: Plan, scene: Scene) -> Write | None:
    """CREATE TABLE … CLONE, … LIKE, and what the older way of writing a table makes."""
    query = node.plan_of("query")
    clone = None if query is None else plan.nodes[query]
    path = None if clone is None else clone.args.get("targetPath")
    target = made_target(node.args["table"], path, plan, scene, has_rows=query is not None)
    if clone is None or query is None:
        return Write((Part(target),))
    if clone.name == "CloneTableCommand":
        return Write((Part(target),), (query,))
    names = tuple((plan.attribute(number).name,) for number in clone.output)
    return Write((Part(target, query, names),))


def _cloned(node: Node, plan: Plan, scene: Scene) -> Write | None:
    """A clone into a path."""
    return Write((Part(converted_target(node.args["targetPath"], None, scene)),), (node.index,))


def _converted(node: Node, plan: Plan, scene: Scene) -> Write | None:
    identifier = node.args["tableIdentifier"]
    is_path = "/" in identifier["table"]
    path = node.args.get("deltaPath") or (identifier["table"] if is_path else None)
    target: Target = converted_target(path, None if is_path else identifier, scene)
    return Write((Part(target),))


def _restored(node: Node, plan: Plan, scene: Scene) -> Write | None:
    """What a table is restored to is read, and nothing else of it."""
    place = place_of(node, plan)
    return None if place is None else Write((Part(target_at(place, node, scene)),), (node.index,))


_ROW_LEVEL: Final = Command(_row_level)
_REWRITES: Final = Command(_of_table(reads=True))
_KEEPS: Final = Command(_of_table(reads=False))
_ALTERS: Final = Command(catalog=altered_by, proven=True)
_LOOKS: Final = Command(ignored="it only looks")
_REPLACED: Final = Command(ignored="analysis puts another command in its place")
_INSIDE: Final = Command(ignored="it runs within another command, which is told")

COMMANDS: Final[Mapping[str, Command]] = {
    "MergeIntoCommand": _ROW_LEVEL,
    "UpdateCommand": _ROW_LEVEL,
    "DeleteCommand": _ROW_LEVEL,
    "DeltaDynamicPartitionOverwriteCommand": Command(_dynamic),
    "OptimizeTableCommand": _REWRITES,
    "DeltaReorgTableCommand": _REWRITES,
    "VacuumTableCommand": _KEEPS,
    "RestoreTableCommand": Command(_restored),
    "CloneTableCommand": Command(_cloned),
    "CreateDeltaTableCommand": Command(_created, created_by),
    "ConvertToDeltaCommand": Command(_converted, converted_by),
    "AlterTableAddConstraint": _ALTERS,
    "AlterTableDropConstraint": _ALTERS,
    "AlterTableDropFeature": _ALTERS,
    "AlterTableClusterBy": _ALTERS,
    "AlterColumnSyncIdentity": _ALTERS,
    "AlterTableAddColumnsDeltaCommand": _ALTERS,
    "AlterTableAddConstraintDeltaCommand": _ALTERS,
    "AlterTableChangeColumnDeltaCommand": _ALTERS,
    "AlterTableClusterByDeltaCommand": _ALTERS,
    "AlterTableDropColumnsDeltaCommand": _ALTERS,
    "AlterTableDropConstraintDeltaCommand": _ALTERS,
    "AlterTableDropFeatureDeltaCommand": _ALTERS,
    "AlterTableReplaceColumnsDeltaCommand": _ALTERS,
    "AlterTableSetLocationDeltaCommand": _ALTERS,
    "AlterTableSetPropertiesDeltaCommand": _ALTERS,
    "AlterTableUnsetPropertiesDeltaCommand": _ALTERS,
    "DeltaGenerateCommand": Command(ignored="the manifest it writes beside the table is nobody's version"),
    "DescribeDeltaDetailCommand": _LOOKS,
    "DescribeDeltaHistory": _LOOKS,
    "DescribeDeltaHistoryCommand": _LOOKS,
    "ShowDeltaTableColumnsCommand": _LOOKS,
    "ShowTableColumnsCommand": _LOOKS,
    "CloneTableStatement": _REPLACED,
    "RestoreTableStatement": _REPLACED,
    "DeltaReorgTable": _REPLACED,
    "DeltaMergeInto": _REPLACED,
    "DeltaUpdateTable": _REPLACED,
    "DeltaDelete": _REPLACED,
    "WriteIntoDelta": _INSIDE,
    "RowTrackingBackfillCommand": _INSIDE,
    "RemoveColumnMappingCommand": _INSIDE,
}
