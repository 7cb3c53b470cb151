"""What the formats' own facts tell of a table that DDL was about: how their metadata or log changed meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headwater.events.names import Generation
from headwater.listeners.capture.asking import answers
from headwater.listeners.capture.catalog.descriptions import TableDescription
from headwater.listeners.capture.catalog.named_tables import NamedTable
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats import FormatPlugin
from headwater.listeners.capture.statements import Statement


@dataclass(frozen=True)
class TableEvidence:
    """None is what nobody reported."""

    did: bool | None = None
    """Whether the table was made, or made anew, while the statement ran."""
    may_keep_table: bool = False
    """Whether what asks for a replacement may only have overwritten the table's rows, which nobody saw."""
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

    def read(plugin: FormatPlugin) -> TableEvidence | None:
        return None if plugin.evidence is None else plugin.evidence(named, statement, context)

    found = next(answers(statement.plan, read), None)
    return NO_EVIDENCE if found is None else found[0]
