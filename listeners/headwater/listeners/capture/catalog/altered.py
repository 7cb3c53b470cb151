"""ALTER TABLE: columns, properties, location, comment, of both kinds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from headwater.events import (
    AddColumn,
    ChangeDefault,
    Effect,
    Event,
    OtherChange,
    Position,
    RecommentColumn,
    RemoveProperty,
    SetLocation,
    SetPartitionLocation,
    SetProperty,
    Table,
    TableChange,
)
from headwater.events.tables import Column
from headwater.events.types import from_field
from headwater.events.types.columns import CURRENT_DEFAULT
from headwater.events.types.ddl import COMMENT
from headwater.events.types.spark_json import metadata_entries
from headwater.listeners.capture.catalog.accounts import account_of
from headwater.listeners.capture.catalog.changes import changes_of, remove_property, set_property, type_of
from headwater.listeners.capture.catalog.described import of_plan
from headwater.listeners.capture.catalog.evidence import Occasion
from headwater.listeners.capture.catalog.modified import altered, altered_since, table_after
from headwater.listeners.capture.catalog.partitions import values_of
from headwater.listeners.capture.catalog.places import first_kind, second_kind
from headwater.listeners.capture.commands import Command, TellCatalog
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Statement

ReadChanges = Callable[[Node, Plan, "Table | None"], Iterable[TableChange]]
"""From a command of the first kind, and the table as it is after it."""


def of_the_second_kind(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    """Commands that hold the table as it was analysed, and what they ask their catalog for."""
    named = second_kind(node, statement.plan, scene)
    if named is None or named.resolved is None or "table" not in named.resolved.args:
        return
    account = account_of(named, statement, scene)
    old = account.before or of_plan(named.resolved.args["table"], named.resolved.output, statement.plan)
    changes = [change for change in _asked(node, statement.plan) if _is_real(change, old.table)]
    if changes:
        yield from altered(named, changes, old, account, Occasion(statement, scene))


def _is_real(change: TableChange, old: Table | None) -> bool:
    """Taking away a property that isn't there changes nothing."""
    return old is None or not isinstance(change, RemoveProperty) or change.key in old.properties


def _asked(node: Node, plan: Plan) -> Iterator[TableChange]:
    told = node.args.get("changes")
    if told is None:
        yield OtherChange(what=node.name)
    else:
        yield from changes_of(told, plan)


def of_the_first_kind(read: ReadChanges) -> TellCatalog:
    """Commands that hold the table's name only."""

    def tell(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
        told: Mapping[str, Any] = node.args.get("tableName") or node.args["table"]
        named = first_kind(told, scene)
        new = table_after(named, statement)
        known = scene.known(named.name)
        old = known.table if known is not None and isinstance(known.table, Table) else None
        told_changes = read(node, statement.plan, new.table if new else None)
        changes = [change for change in told_changes if _is_real(change, old)]
        effect = Effect.UNKNOWN if node.args.get("ifExists") and old is None else Effect.APPLIED
        return altered_since(named, changes, new, Occasion(statement, scene), effect=effect)

    return tell


def _added(node: Node, plan: Plan, new: Table | None) -> Iterator[TableChange]:
    """Spark puts them behind the other columns of data, before those that the table is partitioned by."""
    for told in node.args.get("colsToAdd", ()):
        column = _column(told, plan)
        yield AddColumn(
            path=(column.name,),
            type=column.type,
            nullable=column.nullable,
            comment=column.comment,
            default=column.default,
            metadata=column.metadata,
            position=_place(column.name, new),
        )


def _place(name: str, new: Table | None) -> Position | None:
    """None: at the end, where Spark puts it unless partition columns stand there."""
    names = [] if new is None or not new.partitioning else [each.name for each in new.columns]
    if name not in names[:-1]:
        return None
    place = names.index(name)
    return Position(after=names[place - 1]) if place else Position()


def _column(told: Mapping[str, Any], plan: Plan) -> Column:
    """Of a StructField."""
    nullable = "true" if told["nullable"] else "false"
    name = json.dumps(told["name"], ensure_ascii=False)
    metadata = told.get("metadata") or "{}"
    return from_field(
        f'{{"name":{name},"type":{type_of(told["dataType"], plan)},"nullable":{nullable},"metadata":{metadata}}}'
    )


def _changed(node: Node, plan: Plan, new: Table | None) -> Iterator[TableChange]:
    """The new column's metadata holds what was said, and nothing of the old one."""
    path = (node.args["columnName"],)
    said = metadata_entries(node.args["newColumn"].get("metadata") or "{}")
    if COMMENT in said:
        yield RecommentColumn(path=path, comment=str(said[COMMENT]))
    if CURRENT_DEFAULT in said:
        yield ChangeDefault(path=path, default=str(said[CURRENT_DEFAULT]) or None)
    if not {COMMENT, CURRENT_DEFAULT}.intersection(said):
        yield OtherChange(what=f"column {path[0]}")


def _properties_set(node: Node, plan: Plan, new: Table | None) -> Iterator[TableChange]:
    return (set_property(key, text) for key, text in node.args["properties"].items())


def _properties_unset(node: Node, plan: Plan, new: Table | None) -> Iterator[TableChange]:
    return (remove_property(key) for key in node.args["propKeys"])


def _moved(node: Node, plan: Plan, new: Table | None) -> Iterator[TableChange]:
    spec, location = node.args.get("partitionSpec"), node.args["location"]
    if spec:
        yield SetPartitionLocation(partition=values_of(spec), location=location)
    else:
        yield SetLocation(location=location)


def _serde(node: Node, plan: Plan, new: Table | None) -> Iterator[TableChange]:
    """The properties of a SerDe are the options of a table; those of a partition have no word."""
    if node.args.get("partSpec"):
        yield OtherChange(what="SerDe properties of a partition")
        return
    if node.args.get("serdeClassName"):
        yield OtherChange(what=f"SerDe {node.args['serdeClassName']}")
    for key, text in (node.args.get("serdeProperties") or {}).items():
        yield SetProperty(key=f"option.{key}", value=text)


_SECOND: Final = (
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

COMMANDS: Final[Mapping[str, Command]] = {
    **{name: Command(catalog=of_the_second_kind) for name in _SECOND},
    "AlterTableAddColumnsCommand": Command(catalog=of_the_first_kind(_added)),
    "AlterTableChangeColumnCommand": Command(catalog=of_the_first_kind(_changed)),
    "AlterTableSetPropertiesCommand": Command(catalog=of_the_first_kind(_properties_set)),
    "AlterTableUnsetPropertiesCommand": Command(catalog=of_the_first_kind(_properties_unset)),
    "AlterTableSetLocationCommand": Command(catalog=of_the_first_kind(_moved)),
    "AlterTableSerDePropertiesCommand": Command(catalog=of_the_first_kind(_serde)),
}
