"""Which table a relation of a plan is: its name without selectors, place, generation, and what was asked of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater.events import TableName
from headwater.events.identity import IdentityError, dataset_of_path
from headwater.events.identity.text import joined, required
from headwater.events.names import DatasetId, Generation
from headwater.listeners.capture.context import CaptureContext, SessionNamedCatalog
from headwater.listeners.capture.formats.relations import parse_uuid
from headwater.listeners.capture.plan.tree import PlanNode

MAIN: Final = "main"
_TAG: Final = re.compile(r"tag_(.+)", re.DOTALL)
_SELECTOR: Final = re.compile(r"(branch|tag)_.+|(at_timestamp|snapshot_id)_[0-9]+|changes|rewrite", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SnapshotSelector:
    """What of a table was asked for; all absent: its newest state on main."""

    snapshot: int | None = None
    time: int | None = None
    branch: str | None = None
    tag: str | None = None
    start: int | None = None
    end: int | None = None
    changes: bool = False


@dataclass(frozen=True, slots=True)
class IcebergTableRef:
    reported: Mapping[str, Any]
    """What the extractor wrote of the table."""
    catalog: SessionNamedCatalog | None
    table: TableName | None
    dataset: DatasetId | None
    generation: Generation | None
    asked: SnapshotSelector

    @property
    def branch(self) -> str | None:
        return self.asked.branch

    @property
    def metadata(self) -> bool:
        """Whether it is a table about a table: its files, snapshots, history."""
        return "metadata" in self.reported


def find_table_ref(node: PlanNode, context: CaptureContext) -> IcebergTableRef | None:
    """Of a relation or a table that was resolved; None where it isn't Iceberg's."""
    table = node.args.get("table")
    fields = table.get("iceberg") if isinstance(table, Mapping) else None
    if fields is None:
        return None
    named = node.args.get("catalog")
    catalog = None if named is None else context.catalog(named)
    identifier = node.args.get("identifier")
    options = {key.lower(): text for key, text in (node.args.get("options") or {}).items()}
    name = None if catalog is None or identifier is None else _table_name(catalog, identifier, fields)
    return IcebergTableRef(
        reported=fields,
        catalog=catalog if name else None,
        table=name,
        dataset=dataset_at(fields["location"], catalog, name, context),
        generation=generation_of(fields),
        asked=_parse_selector(fields, identifier, options),
    )


def parse_table_uuid(text: str) -> Generation:
    """Of `table.uuid()`, which a table keeps as long as it lives."""
    found = parse_uuid(required(text, "an Iceberg table's uuid"))
    if found is None:
        msg = "an Iceberg table's uuid isn't a UUID; take it from the table's metadata, not from its properties"
        raise IdentityError(msg)
    return found


def generation_of(fields: Mapping[str, Any]) -> Generation | None:
    return parse_table_uuid(fields["uuid"]) if fields.get("uuid") else None


def dataset_at(
    location: str | None, catalog: SessionNamedCatalog | None, name: TableName | None, context: CaptureContext
) -> DatasetId | None:
    if catalog is not None and name is not None:
        found = context.dataset(catalog, name, location)
        if found is not None:
            return found
    try:
        return dataset_of_path(location, context.environment) if location else None
    except IdentityError:
        return None


def _table_name(
    catalog: SessionNamedCatalog, identifier: Mapping[str, Any], fields: Mapping[str, Any]
) -> TableName | None:
    """None for a table that has only a path. `t.branch_b` is the table t."""
    spaces, name = list(identifier["namespace"]), identifier["name"]
    if fields["name"] == fields["location"] or "/" in "".join(spaces):
        return None
    selects = _SELECTOR.fullmatch(name) and fields["name"].split(".")[-1] != name
    if selects and spaces:
        name = spaces.pop()
    return TableName(catalog=catalog.name, database=joined(spaces), table=name)


def _parse_selector(
    fields: Mapping[str, Any], identifier: Mapping[str, Any] | None, options: Mapping[str, str]
) -> SnapshotSelector:
    tagged = _TAG.fullmatch(identifier["name"]) if identifier else None
    selected = tagged is not None and fields.get("snapshot") is not None
    branch = fields.get("branch") or options.get("branch")
    return SnapshotSelector(
        snapshot=fields.get("snapshot") or _number(options, "snapshot-id"),
        time=_number(options, "as-of-timestamp"),
        branch=None if branch == MAIN else branch,
        tag=tagged[1] if tagged and selected else options.get("tag"),
        start=_number(options, "start-snapshot-id"),
        end=_number(options, "end-snapshot-id"),
        changes=bool(fields.get("changes"))
        or any(key.startswith(("start-snapshot", "start-timestamp")) for key in options),
    )


def _number(options: Mapping[str, str], key: str) -> int | None:
    text = options.get(key)
    return int(text) if text and text.lstrip("-").isdecimal() else None
