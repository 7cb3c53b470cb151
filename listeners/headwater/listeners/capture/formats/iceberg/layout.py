"""Iceberg's own DDL: a table's partition fields, its order and its identifier fields; its branches and tags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from headwater.events import CreateBranch, CreateTag, DropBranch, DropTag, Event
from headwater.events.catalog import ModificationEffect
from headwater.events.changes import (
    AddPartitionField,
    DropPartitionField,
    OtherChange,
    ReplacePartitionField,
    SetOrdering,
    SetPrimaryKey,
    SetProperty,
    TableChange,
)
from headwater.events.tables import Transform
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.iceberg.table_changes import (
    ModifiedTable,
    TableState,
    alter_event,
    event_fields,
    find_modified_table,
    unknown_change,
)
from headwater.listeners.capture.formats.iceberg.tables import path_of, primary_key_of, table_of, transform_of
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import Statement

_RETENTION: Final[Mapping[str, str]] = {
    "maxRefAgeMs": "max-ref-age-ms",
    "minSnapshotsToKeep": "min-snapshots-to-keep",
    "maxSnapshotAgeMs": "max-snapshot-age-ms",
}
"""As Iceberg's metadata calls them."""


def _ref_created(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterable[Event]:
    found = find_modified_table(statement, context)
    if found is None or found.any is None:
        return [unknown_change(f"{node.name} isn't recorded")]
    tag = "tag" in node.args
    name = node.args["tag" if tag else "branch"]
    effect = _effect_of(node, found, name)
    if effect is None:
        return []
    fields: dict[str, Any] = {
        **event_fields(found, context),
        "effect": effect,
        "snapshot": _snapshot(node, found, name),
        "ignore_if_exists": bool(node.args.get("ifNotExists")),
        "replaced": _existed(found, name) if found.before is not None else not node.args["create"],
        "retention": _retention(_ref(found.after, name)),
    }
    return [CreateTag(tag=name, **fields) if tag else CreateBranch(branch=name, **fields)]


def _effect_of(node: PlanNode, found: ModifiedTable, name: str) -> ModificationEffect | None:
    """None where nothing happened: the name was there already, or stayed where it was."""
    if node.args.get("ifNotExists"):
        if _existed(found, name):
            return None
        return (
            ModificationEffect.APPLIED
            if _ref(found.after, name) is not None and found.before is not None
            else ModificationEffect.UNKNOWN
        )
    if node.args["replace"] and found.changes == 0:
        return None
    return ModificationEffect.APPLIED


def _snapshot(node: PlanNode, found: ModifiedTable, name: str) -> int | None:
    options = node.args.get("tagOptions" if "tag" in node.args else "branchOptions") or {}
    asked: int | None = options.get("snapshotId")
    ref = _ref(found.after, name)
    if asked is not None:
        return asked
    return ref["snapshot"] if ref is not None and found.alone else None


def _ref_dropped(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterable[Event]:
    found = find_modified_table(statement, context)
    if found is None or found.any is None:
        return [unknown_change(f"{node.name} isn't recorded")]
    name = node.args.get("tag") or node.args["branch"]
    lenient = bool(node.args["ifExists"])
    if lenient and found.before is not None and not _existed(found, name):
        return []
    effect = ModificationEffect.UNKNOWN if lenient and found.before is None else ModificationEffect.APPLIED
    fields: dict[str, Any] = {**event_fields(found, context), "effect": effect, "ignore_if_not_exists": lenient}
    return [DropTag(tag=name, **fields) if "tag" in node.args else DropBranch(branch=name, **fields)]


def _existed(found: ModifiedTable, name: str) -> bool:
    return _ref(found.before, name) is not None


def _ref(state: TableState | None, name: str) -> Mapping[str, Any] | None:
    return None if state is None else state["refs"].get(name)


def _retention(ref: Mapping[str, Any] | None) -> str | None:
    kept = [f"{word}={ref[key]}" for key, word in _RETENTION.items() if ref and ref.get(key) is not None]
    return ", ".join(kept) or None


REF_COMMANDS: Final[Mapping[str, CommandRule]] = {
    "CreateOrReplaceBranch": CommandRule(catalog=_ref_created),
    "CreateOrReplaceTag": CommandRule(catalog=_ref_created),
    "DropBranch": CommandRule(catalog=_ref_dropped),
    "DropTag": CommandRule(catalog=_ref_dropped),
}


_DISTRIBUTION: Final = "write.distribution-mode"

Changes = Callable[[PlanNode, ModifiedTable], Iterable[TableChange]]


def _layout_command(changes: Changes) -> CommandRule:
    def translate(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterable[Event]:
        found = find_modified_table(statement, context)
        if found is None or found.any is None:
            return [unknown_change(f"{node.name} isn't recorded")]
        made = tuple(changes(node, found))
        return [alter_event(found, made, context)] if made else []

    return CommandRule(catalog=translate)


def _field_added(node: PlanNode, found: ModifiedTable) -> Iterable[TableChange]:
    return [AddPartitionField(transform=transform_of(node.args["transform"], node.args.get("name")))]


def _field_dropped(node: PlanNode, found: ModifiedTable) -> Iterable[TableChange]:
    return [DropPartitionField(transform=_resolve_field(node.args["transform"], found))]


def _field_replaced(node: PlanNode, found: ModifiedTable) -> Iterable[TableChange]:
    new = transform_of(node.args["transformTo"], node.args.get("name"))
    return [ReplacePartitionField(transform=_resolve_field(node.args["transformFrom"], found), new_transform=new)]


def _resolve_field(fields: Mapping[str, Any], found: ModifiedTable) -> Transform:
    """What looks like a column may be a field's own name."""
    transform = transform_of(fields)
    state = found.before or found.any
    if not transform.is_identity or state is None:
        return transform
    name = ".".join(transform.columns[0])
    names = {column.name.lower() for column in columns_from_schema_json(state["schema"])}
    if name.lower() in names:
        return transform
    return next((t for t in table_of(state).partitioning if t.field_name == name), Transform(field_name=name))


def _order_set(node: PlanNode, found: ModifiedTable) -> Iterable[TableChange]:
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


def _identifier_set(node: PlanNode, found: ModifiedTable) -> Iterable[TableChange]:
    return [SetPrimaryKey(columns=tuple(path_of(name) for name in node.args["fields"]))]


def _identifier_dropped(node: PlanNode, found: ModifiedTable) -> Iterable[TableChange]:
    gone = {path_of(name) for name in node.args["fields"]}
    if found.before is None:
        return [OtherChange(what="identifier fields")]
    return [SetPrimaryKey(columns=tuple(path for path in primary_key_of(found.before) if path not in gone))]


LAYOUT_COMMANDS: Final[Mapping[str, CommandRule]] = {
    "AddPartitionField": _layout_command(_field_added),
    "DropPartitionField": _layout_command(_field_dropped),
    "ReplacePartitionField": _layout_command(_field_replaced),
    "SetWriteDistributionAndOrdering": _layout_command(_order_set),
    "SetIdentifierFields": _layout_command(_identifier_set),
    "DropIdentifierFields": _layout_command(_identifier_dropped),
    "OrderAwareCoalesce": CommandRule(ignored="an operator of a compaction's own plan, never a statement"),
}
