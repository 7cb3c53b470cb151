"""The metaData action of Delta's log as a description of a table.

What Delta's own facts tell of a table that DDL was about.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from headwater.events import Format
from headwater.events.base import StringMap
from headwater.events.names import Generation
from headwater.events.scalars import FieldPath
from headwater.events.tables import Column, Constraint, ConstraintKind, Table, TableKind, Transform
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.catalog.named_tables import NamedTable
from headwater.listeners.capture.catalog.table_evidence import TableDescription, TableEvidence
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.delta.commits import commits_of, is_watched
from headwater.listeners.capture.formats.delta.sinks import CATALOG
from headwater.listeners.capture.formats.delta.table_refs import parse_metadata_id
from headwater.listeners.capture.formats.plugin import TableFacts
from headwater.listeners.capture.formats.relations import parse_generation
from headwater.listeners.capture.statements import Statement

_CHECK: Final = "delta.constraints."
_GENERATION: Final = "delta.generationExpression"
_GENERATED: Final = "GENERATION_EXPRESSION"
_VOLATILE_PROPERTIES: Final = frozenset({"delta.identity.highWaterMark"})
"""What each commit changes, and nobody calls a change of the table."""
_MAPPING: Final = ("delta.columnMapping.", "parquet.field.")
_INTERNAL_PROPERTIES: Final = frozenset(
    {"delta.columnMapping.maxColumnId", "delta.rowTracking.materializedRowIdColumnName"}
)
PHYSICAL_NAME: Final = "delta.columnMapping.physicalName"


def table_of(metadata: Mapping[str, Any], path: str, kind: str | None = None, clustering: object = ()) -> Table:
    configuration: Mapping[str, str] = metadata.get("configuration", {})
    return Table(
        columns=columns_from_metadata(metadata),
        partitioning=tuple(Transform(columns=((name,),)) for name in metadata.get("partitions", ())),
        clustering=parse_clustering(clustering),
        constraints=constraints_of(configuration),
        properties=StringMap(properties_of(configuration)),
        comment=metadata.get("description"),
        location=path,
        provider="delta",
        table_kind={"MANAGED": TableKind.MANAGED, "EXTERNAL": TableKind.EXTERNAL}.get(kind or "", TableKind.UNKNOWN),
    )


def columns_from_metadata(metadata: Mapping[str, Any]) -> tuple[Column, ...]:
    """Without what column mapping keeps for itself."""
    schema = json.loads(metadata["schema"])
    return columns_from_schema_json(json.dumps(_clean_type(schema), ensure_ascii=False))


def constraints_of(configuration: Mapping[str, str]) -> tuple[Constraint, ...]:
    return tuple(
        Constraint(name=key[len(_CHECK) :], kind=ConstraintKind.CHECK, expression=text, enforced=True)
        for key, text in sorted(configuration.items())
        if key.startswith(_CHECK)
    )


def properties_of(configuration: Mapping[str, str]) -> dict[str, str]:
    kept = {key: text for key, text in configuration.items() if not key.startswith(_CHECK)}
    return {key: text for key, text in kept.items() if key not in _INTERNAL_PROPERTIES}


def parse_clustering(columns: object) -> tuple[FieldPath, ...]:
    """As the operation's parameters say it: names in a list, in JSON or with commas; nothing of another kind counts."""
    if isinstance(columns, str):
        columns = _names(columns)
    return tuple(tuple(name.split(".")) for name in columns) if isinstance(columns, list) else ()


def _names(text: str) -> list[str]:
    if text.startswith("["):
        found: list[str] = json.loads(text)
        return found
    return [name for name in text.split(",") if name]


def _clean_type(type_: Any) -> Any:
    if not isinstance(type_, dict):
        return type_
    cleaned = {key: _clean_type(value) for key, value in type_.items() if key != "fields"}
    if "fields" in type_:
        cleaned["fields"] = [_field(field) for field in type_["fields"]]
    return cleaned


def _field(field: Mapping[str, Any]) -> dict[str, Any]:
    fields: Mapping[str, Any] = field.get("metadata", {})
    metadata = {
        key: value for key, value in fields.items() if key not in _VOLATILE_PROPERTIES and not key.startswith(_MAPPING)
    }
    if _GENERATION in metadata:
        metadata[_GENERATED] = metadata.pop(_GENERATION)
    return {**field, "type": _clean_type(field["type"]), "metadata": metadata}


def read_table_facts(fields: Mapping[str, Any]) -> TableFacts:
    """Of what the extractor wrote into a table."""
    generation = parse_generation(parse_metadata_id, fields.get("generation"))
    return TableFacts(location=fields.get("path"), generation=generation)


def find_evidence(named: NamedTable, statement: Statement, context: CaptureContext) -> TableEvidence | None:
    """By the versions that the statement's own threads committed."""
    replaces = any(node.name == "ReplaceTableAsSelect" for node in statement.plan.nodes)
    if replaces and named.catalog.class_name == CATALOG and not is_watched(statement.facts):
        return TableEvidence(may_keep_table=True)
    seen = commits_of(statement.facts)
    if replaces and seen and all(commit.keeps_id for commit in seen):
        return TableEvidence(did=False, existed=True)  # `saveAsTable` overwrote it: schema_changes tells the rest
    commits = [commit for commit in seen if commit.metadata or commit.before]
    if not commits:
        return None
    last = commits[-1]
    kind = (last.table or {}).get("type")
    before, after = last.before, last.metadata or last.before
    return TableEvidence(
        did=True,
        existed=last.before is not None,
        before=None
        if before is None
        else TableDescription(table_of(before, last.path, kind), Format.DELTA, _generation_of(before)),
        after=None
        if after is None
        else TableDescription(table_of(after, last.path, kind), Format.DELTA, _generation_of(after)),
        replaced_generation=None if before is None else _generation_of(before),
        produced=last.version,
        parent=last.parent,
    )


def _generation_of(metadata: Mapping[str, Any]) -> Generation | None:
    return parse_generation(parse_metadata_id, metadata.get("id"))
