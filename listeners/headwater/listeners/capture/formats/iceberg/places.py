"""Which table a relation of a plan is: its name without selectors, its place, its life, and what was asked of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater.events import TableName
from headwater.events.identity import IdentityError, dataset_of_path, iceberg_life
from headwater.events.identity.text import joined
from headwater.events.names import DatasetId, Life
from headwater.listeners.capture.plan.tree import Node
from headwater.listeners.capture.scene import NamedCatalog, Scene

MAIN: Final = "main"
_TAG: Final = re.compile(r"tag_(.+)", re.DOTALL)
_SELECTOR: Final = re.compile(r"(branch|tag)_.+|(at_timestamp|snapshot_id)_[0-9]+|changes|rewrite", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Asked:
    """What of a table was asked for; all absent: its newest state on main."""

    snapshot: int | None = None
    time: int | None = None
    branch: str | None = None
    tag: str | None = None
    start: int | None = None
    end: int | None = None
    changes: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    told: Mapping[str, Any]
    """What the eye wrote of the table."""
    catalog: NamedCatalog | None
    table: TableName | None
    dataset: DatasetId | None
    life: Life | None
    asked: Asked

    @property
    def branch(self) -> str | None:
        return self.asked.branch

    @property
    def metadata(self) -> bool:
        """Whether it is a table about a table: its files, snapshots, history."""
        return "metadata" in self.told


def place_of(node: Node, scene: Scene) -> Place | None:
    """Of a relation or a table that was resolved; None where it isn't Iceberg's."""
    table = node.args.get("table")
    told = table.get("iceberg") if isinstance(table, Mapping) else None
    if told is None:
        return None
    named = node.args.get("catalog")
    catalog = None if named is None else scene.catalog(named)
    identifier = node.args.get("identifier")
    options = {key.lower(): text for key, text in (node.args.get("options") or {}).items()}
    name = None if catalog is None or identifier is None else _name(catalog, identifier, told)
    return Place(
        told=told,
        catalog=catalog if name else None,
        table=name,
        dataset=dataset_at(told["location"], catalog, name, scene),
        life=life_of(told),
        asked=_asked(told, identifier, options),
    )


def life_of(told: Mapping[str, Any]) -> Life | None:
    return iceberg_life(told["uuid"]) if told.get("uuid") else None


def dataset_at(
    location: str | None, catalog: NamedCatalog | None, name: TableName | None, scene: Scene
) -> DatasetId | None:
    if catalog is not None and name is not None:
        found = scene.dataset(catalog, name, location)
        if found is not None:
            return found
    try:
        return dataset_of_path(location, scene.site) if location else None
    except IdentityError:
        return None


def _name(catalog: NamedCatalog, identifier: Mapping[str, Any], told: Mapping[str, Any]) -> TableName | None:
    """None for a table that has only a path. `t.branch_b` is the table t."""
    spaces, name = list(identifier["namespace"]), identifier["name"]
    if told["name"] == told["location"] or "/" in "".join(spaces):
        return None
    selects = _SELECTOR.fullmatch(name) and told["name"].split(".")[-1] != name
    if selects and spaces:
        name = spaces.pop()
    return TableName(catalog=catalog.name, database=joined(spaces) if spaces else "", table=name)


def _asked(told: Mapping[str, Any], identifier: Mapping[str, Any] | None, options: Mapping[str, str]) -> Asked:
    tagged = _TAG.fullmatch(identifier["name"]) if identifier else None
    selected = tagged is not None and told.get("snapshot") is not None
    branch = told.get("branch") or options.get("branch")
    return Asked(
        snapshot=told.get("snapshot") or _number(options, "snapshot-id"),
        time=_number(options, "as-of-timestamp"),
        branch=None if branch == MAIN else branch,
        tag=tagged[1] if tagged and selected else options.get("tag"),
        start=_number(options, "start-snapshot-id"),
        end=_number(options, "end-snapshot-id"),
        changes=bool(told.get("changes"))
        or any(key.startswith(("start-snapshot", "start-timestamp")) for key in options),
    )


def _number(options: Mapping[str, str], key: str) -> int | None:
    text = options.get(key)
    return int(text) if text and text.lstrip("-").isdecimal() else None
