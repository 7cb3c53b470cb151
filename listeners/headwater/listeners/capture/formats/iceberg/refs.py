"""Branches and tags: made, moved and dropped by Iceberg's own DDL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from headwater.events import CreateBranch, CreateTag, DropBranch, DropTag, Effect, Event
from headwater.listeners.capture.commands import Command
from headwater.listeners.capture.formats.iceberg.modified import Modified, State, about, modified, unknown
from headwater.listeners.capture.plan.tree import Node
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Statement

_RETENTION: Final[Mapping[str, str]] = {
    "maxRefAgeMs": "max-ref-age-ms",
    "minSnapshotsToKeep": "min-snapshots-to-keep",
    "maxSnapshotAgeMs": "max-snapshot-age-ms",
}
"""As Iceberg's metadata calls them."""


def _made(node: Node, statement: Statement, scene: Scene) -> Iterable[Event]:
    found = modified(statement, scene)
    if found is None or found.any is None:
        return [unknown(f"{node.name} isn't told")]
    tag = "tag" in node.args
    name = node.args["tag" if tag else "branch"]
    effect = _effect(node, found, name)
    if effect is None:
        return []
    told: dict[str, Any] = {
        **about(found, scene),
        "effect": effect,
        "snapshot": _snapshot(node, found, name),
        "ignore_if_exists": bool(node.args.get("ifNotExists")),
        "replaced": _was_there(found, name) if found.before is not None else not node.args["create"],
        "retention": _retention(_ref(found.after, name)),
    }
    return [CreateTag(tag=name, **told) if tag else CreateBranch(branch=name, **told)]


def _effect(node: Node, found: Modified, name: str) -> Effect | None:
    """None where nothing happened: the name was there already, or stayed where it was."""
    if node.args.get("ifNotExists"):
        if _was_there(found, name):
            return None
        return Effect.APPLIED if _ref(found.after, name) is not None and found.before is not None else Effect.UNKNOWN
    if node.args["replace"] and found.changes == 0:
        return None
    return Effect.APPLIED


def _snapshot(node: Node, found: Modified, name: str) -> int | None:
    options = node.args.get("tagOptions" if "tag" in node.args else "branchOptions") or {}
    asked: int | None = options.get("snapshotId")
    ref = _ref(found.after, name)
    if asked is not None:
        return asked
    return ref["snapshot"] if ref is not None and found.alone else None


def _dropped(node: Node, statement: Statement, scene: Scene) -> Iterable[Event]:
    found = modified(statement, scene)
    if found is None or found.any is None:
        return [unknown(f"{node.name} isn't told")]
    name = node.args.get("tag") or node.args["branch"]
    lenient = bool(node.args["ifExists"])
    if lenient and found.before is not None and not _was_there(found, name):
        return []
    effect = Effect.UNKNOWN if lenient and found.before is None else Effect.APPLIED
    told: dict[str, Any] = {**about(found, scene), "effect": effect, "ignore_if_not_exists": lenient}
    return [DropTag(tag=name, **told) if "tag" in node.args else DropBranch(branch=name, **told)]


def _was_there(found: Modified, name: str) -> bool:
    return _ref(found.before, name) is not None


def _ref(state: State | None, name: str) -> Mapping[str, Any] | None:
    return None if state is None else state["refs"].get(name)


def _retention(ref: Mapping[str, Any] | None) -> str | None:
    told = [f"{word}={ref[key]}" for key, word in _RETENTION.items() if ref and ref.get(key) is not None]
    return ", ".join(told) or None


COMMANDS: Final[Mapping[str, Command]] = {
    "CreateOrReplaceBranch": Command(catalog=_made),
    "CreateOrReplaceTag": Command(catalog=_made),
    "DropBranch": Command(catalog=_dropped),
    "DropTag": Command(catalog=_dropped),
}
