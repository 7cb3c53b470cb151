"""What Delta's own facts tell of a table that DDL was about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.events import Format
from headwater.events.names import Generation
from headwater.listeners.capture.catalog.named_tables import NamedTable
from headwater.listeners.capture.catalog.table_evidence import TableDescription, TableEvidence
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.delta.commits import commits_of, is_watched
from headwater.listeners.capture.formats.delta.metadata import table_of
from headwater.listeners.capture.formats.delta.sinks import CATALOG
from headwater.listeners.capture.formats.delta.table_refs import parse_metadata_id
from headwater.listeners.capture.formats.plugin import TableFacts
from headwater.listeners.capture.formats.relations import parse_generation
from headwater.listeners.capture.statements import Statement


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
