"""Commands that commit by a user of their own which shows nowhere: truncation, dropped partitions, statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from headwater.events import CommitKind, Event, Extent, TableName, Truncate
from headwater.listeners.capture.commands import Command, Part, Write
from headwater.listeners.capture.formats.paimon import tables
from headwater.listeners.capture.formats.paimon.written import written
from headwater.listeners.capture.formats.protocol import Target
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import NamedCatalog, Scene
from headwater.listeners.capture.statements import Statement


def _part(target: Target, kind: CommitKind, extent: Extent, *, certain: bool) -> Write:
    hints = {**target.hints, "certain": certain}
    return Write((Part(replace(target, kind=kind, replaced=extent, hints=hints)),))


def _truncated(node: Node, scene: Scene) -> Target | None:
    table = node.args.get("v2Table")
    return tables.in_catalogs(table, scene) if isinstance(table, dict) and "paimon" in table else None


def _truncate(node: Node, plan: Plan, scene: Scene) -> Write | None:
    target = _truncated(node, scene)
    if target is None:
        return None
    partitions = node.args.get("partitionSpec")
    return _part(target, CommitKind.TRUNCATE, Extent.PART if partitions else Extent.ALL, certain=True)


def _tell_truncate(node: Node, statement: Statement, scene: Scene) -> Iterable[Event]:
    write = _truncate(node, statement.plan, scene)
    if write is None:
        return
    target = write.parts[0].target
    catalog, name = _catalog_of(target, node, statement, scene)
    if catalog is None or name is None:
        return
    outputs = written(target, statement).outputs
    yield Truncate(
        context=catalog.context,
        identifier=name,
        dataset=target.sink.dataset,
        life=target.sink.life,
        format=target.sink.format,
        on_branch=target.sink.branch,
        schema_id=target.hints["schema"],
        produced=outputs[0].snapshot if outputs else None,
        parent=outputs[0].parent if outputs else None,
    )


def _catalog_of(
    target: Target, node: Node, statement: Statement, scene: Scene
) -> tuple[NamedCatalog | None, TableName | None]:
    """Where the path alone doesn't tell, the eye has asked the catalogs."""
    if target.catalog is not None:
        return target.catalog, target.sink.table
    told = statement.facts.looked_up.get("paimon", {}).get("catalog")
    catalog = None if told is None else scene.catalog_called(told)
    return catalog, None if catalog is None else tables.name_in(catalog, node.args["v2Table"])


def _drop_partitions(node: Node, plan: Plan, scene: Scene) -> Write | None:
    """With IF EXISTS, nothing may have been there to drop, and then nothing is committed."""
    index = node.plan_of("table")
    target = None if index is None else tables.relation(plan.nodes[index], plan, scene)
    if target is None:
        return Write(())
    return _part(target, CommitKind.TRUNCATE, Extent.PART, certain=not node.args.get("ifExists", True))


def _analyze(node: Node, plan: Plan, scene: Scene) -> Write | None:
    """A table without a snapshot gets none by being analyzed."""
    table = node.args.get("v2Table")
    if not isinstance(table, dict) or "paimon" not in table:
        return None
    named = Node(node.index, node.name, node.class_name, (), (), {**node.args, "table": table})
    target = tables.relation(named, plan, scene)
    return None if target is None else _part(target, CommitKind.ANALYZE, Extent.NOTHING, certain=False)


COMMANDS: Final[Mapping[str, Command]] = {
    "PaimonTruncateTableCommand": Command(_truncate, _tell_truncate),
    "DropPartitions": Command(_drop_partitions),
    "PaimonAnalyzeTableColumnCommand": Command(_analyze),
}
