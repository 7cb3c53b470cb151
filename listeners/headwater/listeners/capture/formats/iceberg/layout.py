"""How Iceberg's own DDL changes a table's partition fields, its order, and its identifier fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from headwater.events import (
    AddPartitionField,
    DropPartitionField,
    Event,
    OtherChange,
    ReplacePartitionField,
    SetOrdering,
    SetPrimaryKey,
    SetProperty,
    TableChange,
    Transform,
)
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.commands import Command
from headwater.listeners.capture.formats.iceberg.modified import Modified, altered, modified, unknown
from headwater.listeners.capture.formats.iceberg.tables import path_of, primary_key_of, table_of, transform_of
from headwater.listeners.capture.plan.tree import Node
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Statement

_DISTRIBUTION: Final = "write.distribution-mode"

Changes = Callable[[Node, Modified], Iterable[TableChange]]


def _telling(changes: Changes) -> Command:
    def tell(node: Node, statement: Statement, scene: Scene) -> Iterable[Event]:
        found = modified(statement, scene)
        if found is None or found.any is None:
            return [unknown(f"{node.name} isn't told")]
        told = tuple(changes(node, found))
        return [altered(found, told, scene)] if told else []

    return Command(catalog=tell)


def _added(node: Node, found: Modified) -> Iterable[TableChange]:
    return [AddPartitionField(transform=transform_of(node.args["transform"], node.args.get("name")))]


def _dropped(node: Node, found: Modified) -> Iterable[TableChange]:
    return [DropPartitionField(transform=_meant(node.args["transform"], found))]


def _replaced(node: Node, found: Modified) -> Iterable[TableChange]:
    new = transform_of(node.args["transformTo"], node.args.get("name"))
    return [ReplacePartitionField(transform=_meant(node.args["transformFrom"], found), new_transform=new)]


def _meant(told: Mapping[str, Any], found: Modified) -> Transform:
    """What looks like a column may be a field's own name."""
    transform = transform_of(told)
    state = found.before or found.any
    if not transform.is_identity or state is None:
        return transform
    name = ".".join(transform.columns[0])
    names = {column.name.lower() for column in columns_from_schema_json(state["schema"])}
    if name.lower() in names:
        return transform
    return next((t for t in table_of(state).partitioning if t.field_name == name), Transform(field_name=name))


def _ordered(node: Node, found: Modified) -> Iterable[TableChange]:
    if found.after is None or not found.alone:
        return [OtherChange(what="the write order or distribution")]
    after = table_of(found.after)
    before = None if found.before is None else table_of(found.before)
    changes: list[TableChange] = []
    if before is None or before.ordering != after.ordering:
        changes.append(SetOrdering(ordering=after.ordering))
    mode = after.properties.get(_DISTRIBUTION)
    if mode is not None and (before is None or before.properties.get(_DISTRIBUTION) != mode):
        changes.append(SetProperty(key=_DISTRIBUTION, value=mode))
    return changes


def _identified(node: Node, found: Modified) -> Iterable[TableChange]:
    return [SetPrimaryKey(columns=tuple(path_of(name) for name in node.args["fields"]))]


def _unidentified(node: Node, found: Modified) -> Iterable[TableChange]:
    gone = {path_of(name) for name in node.args["fields"]}
    if found.before is None:
        return [OtherChange(what="identifier fields")]
    return [SetPrimaryKey(columns=tuple(path for path in primary_key_of(found.before) if path not in gone))]


COMMANDS: Final[Mapping[str, Command]] = {
    "AddPartitionField": _telling(_added),
    "DropPartitionField": _telling(_dropped),
    "ReplacePartitionField": _telling(_replaced),
    "SetWriteDistributionAndOrdering": _telling(_ordered),
    "SetIdentifierFields": _telling(_identified),
    "DropIdentifierFields": _telling(_unidentified),
    "OrderAwareCoalesce": Command(ignored="an operator of a compaction's own plan, never a statement"),
}
