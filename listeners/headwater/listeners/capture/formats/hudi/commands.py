"""Hudi's own commands: what each writes and reads, and what it does to a catalog. All of the jar's are here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from headwater.events import CommitKind, Extent, FieldPath, TableName
from headwater.listeners.capture.commands import Command, Part, Write
from headwater.listeners.capture.formats.hudi import ddl, procedures
from headwater.listeners.capture.formats.hudi.places import OF_HUDI
from headwater.listeners.capture.formats.hudi.sinks import hints, made_target, named_target, own_names, sink_of
from headwater.listeners.capture.formats.protocol import Target
from headwater.listeners.capture.formats.relations import table_name
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene

_NO_TABLE: Final = frozenset({"LocalRelation", "OneRowRelation", "Range", "CommandResult", "CTERelationRef"})


def _inserted(node: Node, plan: Plan, scene: Scene) -> Write | None:
    relation, query = node.plan_of("logicalRelation"), node.plan_of("query")
    target = None if relation is None else sink_of(plan.nodes[relation], plan, scene)
    if relation is None or query is None or target is None:
        return None
    overwrite = bool(node.args.get("overwrite"))
    kind = CommitKind.OVERWRITE if overwrite else CommitKind.APPEND
    extent = Extent.UNKNOWN if overwrite else Extent.NOTHING
    target = replace(target, kind=kind, replaced=extent)
    return Write((Part(target, query, _columns(node, plan, plan.nodes[relation], query)),))


def _columns(node: Node, plan: Plan, relation: Node, query: int) -> tuple[FieldPath | None, ...]:
    """By their names, where the query has those of the table; else by position, without partitions that are given."""
    given = {key.lower() for key, text in (node.args.get("partitionSpec") or {}).items() if text is not None}
    names = [plan.attribute(each).name for each in relation.output]
    names = [name for name in names if name not in OF_HUDI and name.lower() not in given]
    own = own_names(plan, query)
    told = {path[0].lower() for path in own if path is not None}
    if {name.lower() for name in names} <= told or len(names) != len(own):
        return own
    return tuple((name,) for name in names)


def _row_level(argument: str, kind: CommitKind) -> Callable[[Node, Plan, Scene], Write | None]:
    """MERGE, UPDATE and DELETE read what they write."""

    def read(node: Node, plan: Plan, scene: Scene) -> Write | None:
        top = node.plan_of(argument)
        if top is None:
            return None
        sides = [plan.nodes[top].plan_of(side) for side in ("targetTable", "table", "sourceTable")]
        target_side, *others = [side for side in sides if side is not None] or [top]
        leaves = [each for each in plan.below(target_side) if not each.inputs]
        target = sink_of(leaves[0], plan, scene) if leaves else None
        if target is None:
            return None
        target = replace(target, kind=kind, replaced=Extent.PART)
        read = [each.index for side in others for each in plan.below(side) if _is_table(each)]
        return Write((Part(target, row_level=True),), (*read, leaves[0].index))

    return read


def _is_table(node: Node) -> bool:
    return not node.inputs and node.name not in _NO_TABLE


def _made(node: Node, plan: Plan, scene: Scene) -> Write | None:
    """CREATE TABLE AS SELECT, and `saveAsTable`."""
    query = node.plan_of("query")
    if query is None:
        return None
    target = made_target(node.args["table"], node.args.get("mode"), query, plan, scene)
    return Write((Part(target, query, own_names(plan, query)),))


def _of_named(argument: str, kind: CommitKind) -> Callable[[Node, Plan, Scene], Write | None]:
    """Commands that have no more than a table's name. What they commit, the timeline tells."""

    def read(node: Node, plan: Plan, scene: Scene) -> Write | None:
        name = _name(node.args.get(argument))
        if name is None:
            return None
        target: Target = replace(named_target(name, None, scene), kind=kind, replaced=Extent.PART, hints=hints(scene))
        return Write((Part(target),))

    return read


def _name(told: Any) -> TableName | None:
    return table_name({**told, "name": told["table"]}) if isinstance(told, Mapping) else None


def _truncated(node: Node, plan: Plan, scene: Scene) -> Write | None:
    """Of all partitions: Hudi removes the files and makes the table anew, without any instant."""
    if not node.args.get("partitionSpec"):
        return Write(())
    return _of_named("tableIdentifier", CommitKind.TRUNCATE)(node, plan, scene)


_PARSED: Final = (
    "CallCommand",
    "CompactionPath",
    "CompactionShowOnPath",
    "CompactionShowOnTable",
    "CompactionTable",
    "CreateIndex",
    "DropIndex",
    "RefreshIndex",
    "ShowIndexes",
)
"""Nodes that Hudi's own parser makes."""
_LOOKS: Final = Command(ignored="it only looks")
_INDEX: Final = Command(ignored="an index doesn't change what a table is")

COMMANDS: Final[Mapping[str, Command]] = {
    "InsertIntoHoodieTableCommand": Command(_inserted),
    "MergeIntoHoodieTableCommand": Command(_row_level("mergeInto", CommitKind.MERGE)),
    "UpdateHoodieTableCommand": Command(_row_level("ut", CommitKind.UPDATE)),
    "DeleteHoodieTableCommand": Command(_row_level("query", CommitKind.DELETE)),
    "CreateHoodieTableCommand": Command(catalog=ddl.created),
    "CreateHoodieTableAsSelectCommand": Command(_made, ddl.created),
    "CreateHoodieTableLikeCommand": Command(catalog=ddl.created_like),
    "AlterHoodieTableAddColumnsCommand": Command(catalog=ddl.columns_added),
    "AlterHoodieTableChangeColumnCommand": Command(catalog=ddl.column_changed),
    "AlterHoodieTableRenameCommand": Command(catalog=ddl.renamed),
    "AlterHoodieTableAddPartitionCommand": Command(catalog=ddl.partitions_added),
    "AlterHoodieTableDropPartitionCommand": Command(
        _of_named("tableIdentifier", CommitKind.DELETE), ddl.partitions_dropped
    ),
    "AlterTableCommand": Command(catalog=ddl.altered),
    "DropHoodieTableCommand": Command(catalog=ddl.dropped),
    "TruncateHoodieTableCommand": Command(_truncated, ddl.truncated),
    "RepairHoodieTableCommand": Command(catalog=ddl.repaired),
    "CallProcedureHoodieCommand": procedures.COMMAND,
    "CompactionHoodiePathCommand": procedures.COMPACTION,
    "CompactionHoodieTableCommand": procedures.COMPACTION,
    "CompactionShowHoodiePathCommand": _LOOKS,
    "CompactionShowHoodieTableCommand": _LOOKS,
    "ShowHoodieCreateTableCommand": _LOOKS,
    "ShowHoodieTablePartitionsCommand": _LOOKS,
    "ShowIndexesCommand": _LOOKS,
    "CreateIndexCommand": _INDEX,
    "DropIndexCommand": _INDEX,
    "RefreshIndexCommand": _INDEX,
    **dict.fromkeys(_PARSED, Command(ignored="analysis puts another command in its place")),
}
