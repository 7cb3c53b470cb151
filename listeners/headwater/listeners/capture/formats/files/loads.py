"""LOAD DATA: files that become part of a table of Hive's as they are. What is in them, nobody looks at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import CommitKind, Extent, Format, Output, ShapedSink, ShapedSource
from headwater.events.identity import IdentityError, dataset_of_path
from headwater.events.names import DatasetId
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.commands import Command, Part, Write
from headwater.listeners.capture.formats.protocol import Described, Outcome, Target
from headwater.listeners.capture.formats.relations import table_name
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Statement

LOAD: Final = "LoadDataCommand"
_PATTERN: Final = frozenset("*?[{")


def loaded_files(node: Node, scene: Scene) -> Described:
    """Several files at once, chosen by a pattern, are no one dataset."""
    path: str = node.args["path"]
    dataset: DatasetId | None = None
    if not _PATTERN.intersection(path):
        try:
            is_local = bool(node.args.get("isLocal")) and "://" not in path and not path.startswith("file:")
            dataset = dataset_of_path(f"file:{path}" if is_local else path, scene.site)
        except IdentityError:
            dataset = None
    source = ShapedSource(dataset=dataset, opaque=None if dataset else "files that were loaded", format=Format.OTHER)
    return Described(node.index, source)


def _load(node: Node, plan: Plan, scene: Scene) -> Write | None:
    told: Mapping[str, Any] = node.args["table"]
    name = table_name({**told, "name": told["table"]})
    known = None if name is None else scene.known(name)
    overwrites = bool(node.args.get("isOverwrite"))
    extent = Extent.NOTHING if not overwrites else Extent.PART if node.args.get("partition") else Extent.ALL
    target = Target(
        ShapedSink(dataset=known.dataset if known else None, table=name, format=Format.HIVE),
        scene.session_catalog(),
        CommitKind.OVERWRITE if overwrites else CommitKind.APPEND,
        extent,
        hints={"written": _written, "scene": scene},
    )
    return Write((Part(target),), (node.index,))


def located(sink: ShapedSink, statement: Statement, scene: Scene) -> ShapedSink:
    """The table is where its catalog said that it is, when the statement had ended."""
    for told in statement.facts.looked_up.get("session", {}).get("tables", ()):
        location = told.get("storage", {}).get("location")
        if sink.table is None or location is None or told["name"].lower() != sink.table.table.lower():
            continue
        columns = sink.columns or columns_from_schema_json(told["schemaText"])
        dataset = scene.dataset(scene.session_catalog(), sink.table, location)
        return sink.model_copy(update={"dataset": dataset, "columns": columns})
    return sink


def _written(target: Target, statement: Statement) -> Outcome:
    sink = located(target.sink, statement, target.hints["scene"])
    place = {name: getattr(sink, name) for name in ("dataset", "table", "life", "format")}
    return Outcome((Output(**place, commit_kind=target.kind, replaced=target.replaced),), sink=sink)


COMMANDS: Final[Mapping[str, Command]] = {LOAD: Command(_load)}
