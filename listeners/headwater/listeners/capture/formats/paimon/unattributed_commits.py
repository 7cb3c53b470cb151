"""Commands that commit by a user of their own which shows nowhere: truncation, dropped partitions, statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from headwater.events import Event, TableName, Truncate
from headwater.events.jobs import CommitKind, OverwriteScope
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext, SessionNamedCatalog
from headwater.listeners.capture.formats.paimon import tables
from headwater.listeners.capture.formats.paimon.write_results import write_result
from headwater.listeners.capture.formats.protocol import SinkWrite, StatementWrites, WriteTarget
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import Statement


def _sink_write(target: WriteTarget, kind: CommitKind, extent: OverwriteScope, *, certain: bool) -> StatementWrites:
    hints = {**target.hints, "certain": certain}
    return StatementWrites((SinkWrite(replace(target, kind=kind, replaced=extent, hints=hints)),))


def _truncate_target(node: PlanNode, context: CaptureContext) -> WriteTarget | None:
    table = node.args.get("v2Table")
    return tables.find_catalog(table, context) if isinstance(table, dict) and "paimon" in table else None


def _truncate_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    target = _truncate_target(node, context)
    if target is None:
        return None
    partitions = node.args.get("partitionSpec")
    return _sink_write(
        target, CommitKind.TRUNCATE, OverwriteScope.PART if partitions else OverwriteScope.ALL, certain=True
    )


def _truncate_events(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterable[Event]:
    write = _truncate_write(node, statement.plan, context)
    if write is None:
        return
    target = write.parts[0].target
    catalog, name = _catalog_of(target, node, statement, context)
    if catalog is None or name is None:
        return
    outputs = write_result(target, statement).outputs
    yield Truncate(
        context=catalog.context,
        identifier=name,
        dataset=target.sink.dataset,
        generation=target.sink.generation,
        format=target.sink.format,
        on_branch=target.sink.branch,
        schema_id=target.hints["schema"],
        produced=outputs[0].snapshot if outputs else None,
        parent=outputs[0].parent if outputs else None,
    )


def _catalog_of(
    target: WriteTarget, node: PlanNode, statement: Statement, context: CaptureContext
) -> tuple[SessionNamedCatalog | None, TableName | None]:
    """Where the path alone doesn't tell, the extractor has asked the catalogs."""
    if target.catalog is not None:
        return target.catalog, target.sink.table
    name = statement.facts.looked_up.get("paimon", {}).get("catalog")
    catalog = None if name is None else context.catalog_called(name)
    return catalog, None if catalog is None else tables.name_in(catalog, node.args["v2Table"])


def _drop_partitions_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """With IF EXISTS, nothing may have been there to drop, and then nothing is committed."""
    index = node.plan_of("table")
    target = None if index is None else tables.relation(plan.nodes[index], plan, context)
    if target is None:
        return StatementWrites(())
    return _sink_write(target, CommitKind.TRUNCATE, OverwriteScope.PART, certain=not node.args.get("ifExists", True))


def _analyze_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """A table without a snapshot gets none by being analyzed."""
    table = node.args.get("v2Table")
    if not isinstance(table, dict) or "paimon" not in table:
        return None
    named = PlanNode(node.index, node.name, node.class_name, (), (), {**node.args, "table": table})
    target = tables.relation(named, plan, context)
    return None if target is None else _sink_write(target, CommitKind.ANALYZE, OverwriteScope.NOTHING, certain=False)


COMMANDS: Final[Mapping[str, CommandRule]] = {
    "PaimonTruncateTableCommand": CommandRule(_truncate_write, _truncate_events),
    "DropPartitions": CommandRule(_drop_partitions_write),
    "PaimonAnalyzeTableColumnCommand": CommandRule(_analyze_write),
}
