"""What Paimon's own facts tell of a table that DDL was about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.listeners.capture.catalog.named_tables import NamedTable
from headwater.listeners.capture.catalog.occurrence import is_during, session_facts
from headwater.listeners.capture.catalog.table_evidence import TableEvidence
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.paimon.tables import parse_creation_time
from headwater.listeners.capture.formats.plugin import TableFacts
from headwater.listeners.capture.formats.relations import parse_generation
from headwater.listeners.capture.statements import Statement

NAME = "paimon"


def read_table_facts(fields: Mapping[str, Any]) -> TableFacts:
    """Of what the extractor wrote into a table."""
    return TableFacts(
        location=fields.get("location"),
        generation=parse_generation(parse_creation_time, fields.get("generation")),
        primary_key=tuple((name,) for name in fields.get("primaryKey", ())),
    )


def find_evidence(named: NamedTable, statement: Statement, context: CaptureContext) -> TableEvidence | None:
    """By the time of the table's first schema, which is the generation; of one that was altered, by its newest."""
    changed = statement.facts.looked_up.get(NAME, {}).get("altered")
    if changed is not None:
        alone = changed["schema"] == changed["before"] + 1 and is_during(statement, changed["at"])
        return TableEvidence(schema_id=changed["schema"] if alone else None)
    for fields in session_facts(statement).get("tables", ()):
        own = fields.get(NAME)
        if own is not None and own.get("generation"):
            made = is_during(statement, own["generation"])
            return TableEvidence(did=made, existed=None if made is None else not made, schema_id=own.get("schema"))
    return None
