"""What the formats' own facts tell of a table that DDL was about: how their metadata or log changed meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headwater.events import Format, Table
from headwater.events.names import Generation


@dataclass(frozen=True)
class TableDescription:
    """A table as something described it."""

    table: Table
    format: Format = Format.UNKNOWN
    generation: Generation | None = None
    created: int | None = None
    """Milliseconds since 1970, as the catalog keeps it."""


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
