"""Branches and tags: made, moved and dropped by Iceberg's own DDL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from headwater.events import CreateBranch, CreateTag, DropBranch, DropTag, Event
from headwater.events.catalog import ModificationEffect
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.iceberg.table_changes import (
    ModifiedTable,
    TableState,
    event_fields,
    find_modified_table,
    unknown_change,
)
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


COMMANDS: Final[Mapping[str, CommandRule]] = {
    "CreateOrReplaceBranch": CommandRule(catalog=_ref_created),
    "CreateOrReplaceTag": CommandRule(catalog=_ref_created),
    "DropBranch": CommandRule(catalog=_ref_dropped),
    "DropTag": CommandRule(catalog=_ref_dropped),
}
