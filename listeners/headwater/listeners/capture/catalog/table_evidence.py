"""What the formats' own facts tell of a table that DDL was about: how their metadata or log changed meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater.events import Format
from headwater.events.identity import IdentityError, delta_generation, iceberg_generation
from headwater.events.identity.text import joined
from headwater.events.names import Generation
from headwater.listeners.capture.catalog.descriptions import TableDescription
from headwater.listeners.capture.catalog.named_tables import NamedTable
from headwater.listeners.capture.catalog.occurrence import is_during, session_facts
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.delta.commits import commits_of
from headwater.listeners.capture.formats.delta.metadata import table_of as delta_table
from headwater.listeners.capture.formats.iceberg.table_changes import FORMAT as ICEBERG
from headwater.listeners.capture.formats.iceberg.tables import table_of as iceberg_table
from headwater.listeners.capture.statements import Statement

PAIMON: Final = "paimon"


@dataclass(frozen=True)
class TableEvidence:
    """None is what nobody reported."""

    did: bool | None = None
    """Whether the table was made, or made anew, while the statement ran."""
    existed: bool | None = None
    """Whether there was a table before."""
    before: TableDescription | None = None
    after: TableDescription | None = None
    replaced_generation: Generation | None = None
    schema_id: int | None = None
    produced: int | None = None
    parent: int | None = None


NO_EVIDENCE: Final = TableEvidence()


def find_evidence(named: NamedTable, statement: Statement, context: CaptureContext) -> TableEvidence:
    """The first that has something to say."""
    for read in _EVIDENCE_READERS:
        found = read(named, statement, context)
        if found is not None:
            return found
    return NO_EVIDENCE


def _iceberg_evidence(named: NamedTable, statement: Statement, context: CaptureContext) -> TableEvidence | None:
    """By the table's list of metadata files. With several changes meanwhile nobody can tell whose the last one is."""
    fields = statement.facts.looked_up.get(ICEBERG, {}).get("changed")
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
        before=_describe_iceberg_state(before) if before is not None and alone else None,
        after=_describe_iceberg_state(after) if after is not None and alone else None,
        replaced_generation=None if before is None else _describe_iceberg_state(before).generation,
        schema_id=after["schemaId"] if after is not None and alone else None,
    )


def _describe_iceberg_state(state: Mapping[str, Any]) -> TableDescription:
    return TableDescription(
        iceberg_table(state),
        Format.ICEBERG,
        _parse_generation(iceberg_generation, state.get("uuid")),
        state.get("created"),
    )


def _delta_evidence(named: NamedTable, statement: Statement, context: CaptureContext) -> TableEvidence | None:
    """By the versions that the statement's own threads committed."""
    commits = [commit for commit in commits_of(statement.facts) if commit.metadata or commit.before]
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
        else TableDescription(delta_table(before, last.path, kind), Format.DELTA, _generation_of(before)),
        after=None
        if after is None
        else TableDescription(delta_table(after, last.path, kind), Format.DELTA, _generation_of(after)),
        replaced_generation=None if before is None else _generation_of(before),
        produced=last.version,
        parent=last.parent,
    )


def _generation_of(metadata: Mapping[str, Any]) -> Generation | None:
    return _parse_generation(delta_generation, metadata.get("id"))


def _paimon_evidence(named: NamedTable, statement: Statement, context: CaptureContext) -> TableEvidence | None:
    """By the time of the table's first schema, which is the generation; of one that was altered, by its newest."""
    changed = statement.facts.looked_up.get(PAIMON, {}).get("altered")
    if changed is not None:
        alone = changed["schema"] == changed["before"] + 1 and is_during(statement, changed["at"])
        return TableEvidence(schema_id=changed["schema"] if alone else None)
    for fields in session_facts(statement).get("tables", ()):
        own = fields.get(PAIMON)
        if own is not None and own.get("generation"):
            made = is_during(statement, own["generation"])
            return TableEvidence(did=made, existed=None if made is None else not made, schema_id=own.get("schema"))
    return None


def _parse_generation(read: Callable[[str], Generation], fields: str | None) -> Generation | None:
    try:
        return None if fields is None else read(fields)
    except IdentityError:
        return None


_EVIDENCE_READERS: Final[tuple[Callable[[NamedTable, Statement, CaptureContext], TableEvidence | None], ...]] = (
    _iceberg_evidence,
    _delta_evidence,
    _paimon_evidence,
)
