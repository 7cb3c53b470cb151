"""ALTER TABLE: columns, properties, location, comment, of both kinds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from headwater.events import Event, Table
from headwater.events.catalog import ModificationEffect
from headwater.events.changes import (
    AddColumn,
    ChangeDefault,
    ColumnPosition,
    OtherChange,
    RecommentColumn,
    RemoveProperty,
    SetLocation,
    SetPartitionLocation,
    SetProperty,
    TableChange,
)
from headwater.events.tables import Column
from headwater.events.types import from_field
from headwater.events.types.columns import CURRENT_DEFAULT
from headwater.events.types.short_text import COMMENT
from headwater.events.types.spark_json import metadata_entries
from headwater.listeners.capture.asking import find_evidence
from headwater.listeners.capture.catalog.descriptions import describe_resolved_table
from headwater.listeners.capture.catalog.named_tables import name_v1_table, name_v2_table
from headwater.listeners.capture.catalog.occurrence import StatementContext
from headwater.listeners.capture.catalog.partitions import partition_values
from headwater.listeners.capture.catalog.table_changes import parse_changes, remove_property, set_property, type_json_of
from headwater.listeners.capture.catalog.table_modification import alter_events, alter_events_by_name, table_after
from headwater.listeners.capture.commands import CatalogTranslator, CommandRule
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import Statement

ReadChanges = Callable[[PlanNode, Plan, "Table | None"], Iterable[TableChange]]
"""From a v1 command, and the table as it is after it."""


def alter_v2_table(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """Commands that hold the table as it was analysed, and what they ask their catalog for."""
    named = name_v2_table(node, statement.plan, context)
    if named is None or named.resolved is None or "table" not in named.resolved.args:
        return
    account = find_evidence(named, statement, context)
    old = account.before or describe_resolved_table(named.resolved.args["table"], named.resolved.output, statement.plan)
    changes = [change for change in _requested_changes(node, statement.plan) if _has_effect(change, old.table)]
    if changes:
        yield from alter_events(named, changes, old, account, StatementContext(statement, context))


def _has_effect(change: TableChange, old: Table | None) -> bool:
    """Taking away a property that isn't there changes nothing."""
    return old is None or not isinstance(change, RemoveProperty) or change.key in old.properties


def _requested_changes(node: PlanNode, plan: Plan) -> Iterator[TableChange]:
    changes = node.args.get("changes")
    if changes is None:
        yield OtherChange(what=node.name)
    else:
        yield from parse_changes(changes, plan)


def _changes_named(node: PlanNode, plan: Plan, new: Table | None) -> Iterator[TableChange]:
    """COMMENT ON TABLE … COLUMN (…), which Spark has since 4.3 (SPARK-54831)."""
    return _requested_changes(node, plan)


def alter_v1_table(read: ReadChanges) -> CatalogTranslator:
    """Commands that hold the table's name only."""

    def translate(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
        fields: Mapping[str, Any] = node.args.get("tableName") or node.args["table"]
        named = name_v1_table(fields, context)
        new = table_after(named, statement)
        known = context.find_known(named.name)
        old = known.table if known is not None and isinstance(known.table, Table) else None
        read_changes = read(node, statement.plan, new.table if new else None)
        changes = [change for change in read_changes if _has_effect(change, old)]
        effect = ModificationEffect.UNKNOWN if node.args.get("ifExists") and old is None else ModificationEffect.APPLIED
        return alter_events_by_name(named, changes, new, StatementContext(statement, context), effect=effect)

    return translate


def _columns_added(node: PlanNode, plan: Plan, new: Table | None) -> Iterator[TableChange]:
    """Spark puts them behind the other columns of data, before those that the table is partitioned by."""
    for fields in node.args.get("colsToAdd", ()):
        column = _parse_column(fields, plan)
        yield AddColumn(
            path=(column.name,),
            type=column.type,
            nullable=column.nullable,
            comment=column.comment,
            default=column.default,
            metadata=column.metadata,
            position=_position_after(column.name, new),
        )


def _position_after(name: str, new: Table | None) -> ColumnPosition | None:
    """None: at the end, where Spark puts it unless partition columns stand there."""
    names = [] if new is None or not new.partitioning else [column.name for column in new.columns]
    if name not in names[:-1]:
        return None
    place = names.index(name)
    return ColumnPosition(after=names[place - 1]) if place else ColumnPosition()


def _parse_column(fields: Mapping[str, Any], plan: Plan) -> Column:
    """Of a StructField."""
    nullable = "true" if fields["nullable"] else "false"
    name = json.dumps(fields["name"], ensure_ascii=False)
    metadata = fields.get("metadata") or "{}"
    return from_field(
        f'{{"name":{name},"type":{type_json_of(fields["dataType"], plan)},"nullable":{nullable},"metadata":{metadata}}}'
    )


def _column_changed(node: PlanNode, plan: Plan, new: Table | None) -> Iterator[TableChange]:
    """The new column's metadata holds what was said, and nothing of the old one."""
    path = (node.args["columnName"],)
    said = metadata_entries(node.args["newColumn"].get("metadata") or "{}")
    if COMMENT in said:
        yield RecommentColumn(path=path, comment=str(said[COMMENT]))
    if CURRENT_DEFAULT in said:
        yield ChangeDefault(path=path, default=str(said[CURRENT_DEFAULT]) or None)
    if not {COMMENT, CURRENT_DEFAULT}.intersection(said):
        yield OtherChange(what=f"column {path[0]}")


def _properties_set(node: PlanNode, plan: Plan, new: Table | None) -> Iterator[TableChange]:
    return (set_property(key, text) for key, text in node.args["properties"].items())


def _properties_unset(node: PlanNode, plan: Plan, new: Table | None) -> Iterator[TableChange]:
    return (remove_property(key) for key in node.args["propKeys"])


def _location_set(node: PlanNode, plan: Plan, new: Table | None) -> Iterator[TableChange]:
    spec, location = node.args.get("partitionSpec"), node.args["location"]
    if spec:
        yield SetPartitionLocation(partition=partition_values(spec), location=location)
    else:
        yield SetLocation(location=location)


def _serde_properties_set(node: PlanNode, plan: Plan, new: Table | None) -> Iterator[TableChange]:
    """The properties of a SerDe are the options of a table; those of a partition have no word."""
    if node.args.get("partSpec"):
        yield OtherChange(what="SerDe properties of a partition")
        return
    if node.args.get("serdeClassName"):
        yield OtherChange(what=f"SerDe {node.args['serdeClassName']}")
    for key, text in (node.args.get("serdeProperties") or {}).items():
        yield SetProperty(key=f"option.{key}", value=text)


_V2_COMMANDS: Final = (
    "AddColumns",
    "ReplaceColumns",
    "DropColumns",
    "RenameColumn",
    "AlterColumn",
    "AlterColumns",
    "SetTableProperties",
    "UnsetTableProperties",
    "SetTableLocation",
    "CommentOnTable",
    "AlterTableClusterBy",
    "AlterTableCollation",
    "AddCheckConstraint",
    "AddConstraint",
    "DropConstraint",
)

COMMANDS: Final[Mapping[str, CommandRule]] = {
    **{name: CommandRule(catalog=alter_v2_table) for name in _V2_COMMANDS},
    "AlterTableAddColumnsCommand": CommandRule(catalog=alter_v1_table(_columns_added)),
    "AlterTableChangeColumnCommand": CommandRule(catalog=alter_v1_table(_column_changed)),
    "AlterTableChangeColumnCommentsCommand": CommandRule(catalog=alter_v1_table(_changes_named)),
    "AlterTableSetPropertiesCommand": CommandRule(catalog=alter_v1_table(_properties_set)),
    "AlterTableUnsetPropertiesCommand": CommandRule(catalog=alter_v1_table(_properties_unset)),
    "AlterTableSetLocationCommand": CommandRule(catalog=alter_v1_table(_location_set)),
    "AlterTableSerDePropertiesCommand": CommandRule(catalog=alter_v1_table(_serde_properties_set)),
}
