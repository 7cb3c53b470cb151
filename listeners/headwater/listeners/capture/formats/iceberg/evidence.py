"""What Iceberg's own facts tell of a table that DDL was about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.events import Format
from headwater.events.identity.text import joined
from headwater.listeners.capture.catalog.named_tables import NamedTable
from headwater.listeners.capture.catalog.occurrence import is_during
from headwater.listeners.capture.catalog.table_evidence import TableDescription, TableEvidence
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.iceberg.table_changes import FORMAT
from headwater.listeners.capture.formats.iceberg.table_refs import parse_table_uuid
from headwater.listeners.capture.formats.iceberg.tables import table_of
from headwater.listeners.capture.formats.plugin import TableFacts
from headwater.listeners.capture.formats.relations import parse_generation
from headwater.listeners.capture.statements import Statement


def read_table_facts(fields: Mapping[str, Any]) -> TableFacts:
    """Of what the extractor wrote into a table."""
    return TableFacts(
        location=fields.get("location"),
        generation=parse_generation(parse_table_uuid, fields.get("uuid")),
        primary_key=tuple(tuple(key.split(".")) for key in fields.get("key", ())),
    )


def find_evidence(named: NamedTable, statement: Statement, context: CaptureContext) -> TableEvidence | None:
    """By the table's list of metadata files. With several changes meanwhile nobody can tell whose the last one is."""
    fields = statement.facts.looked_up.get(FORMAT, {}).get("changed")
    if fields is None or "catalog" not in fields or context.catalog(fields["catalog"]).name != named.catalog.name:
        return None
    if (joined(fields["namespace"]), fields["name"]) != (
        named.name.database,
        named.name.table,
    ):
        return None
    before, after = fields.get("before"), fields.get("after")
    newest = after or before
    if newest is None:
        return None
    made = is_during(statement, newest.get("created"))
    alone = fields.get("changes", 0) <= 1
    return TableEvidence(
        did=made or fields.get("changes", 0) > 0,
        existed=before is not None if made is None else not made,
        before=_describe(before) if before is not None and alone else None,
        after=_describe(after) if after is not None and alone else None,
        replaced_generation=None if before is None else _describe(before).generation,
        schema_id=after["schemaId"] if after is not None and alone else None,
    )


def _describe(state: Mapping[str, Any]) -> TableDescription:
    return TableDescription(
        table_of(state),
        Format.ICEBERG,
        parse_generation(parse_table_uuid, state.get("uuid")),
        state.get("created"),
    )
