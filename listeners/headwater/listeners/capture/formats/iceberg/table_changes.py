"""A table that a command changed otherwise than by rows: as its metadata was before the statement and after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater.events import AlterTable, Format, Gap, Table, TableName
from headwater.events.apply import ChangeError, apply
from headwater.events.catalog import ModificationCause
from headwater.events.changes import TableChange
from headwater.events.health import GapReason
from headwater.events.identity.text import joined
from headwater.listeners.capture.context import CaptureContext, SessionNamedCatalog
from headwater.listeners.capture.formats.iceberg.table_refs import dataset_at, generation_of
from headwater.listeners.capture.formats.iceberg.tables import table_of
from headwater.listeners.capture.statements import Statement

FORMAT: Final = "iceberg"

TableState = Mapping[str, Any]


@dataclass(frozen=True)
class ModifiedTable:
    catalog: SessionNamedCatalog
    table: TableName
    before: TableState | None
    """None where there was no table, or where its metadata isn't kept any more."""
    after: TableState | None
    changes: int
    """How often its metadata changed while the statement ran. More than once: others changed it, too."""
    reported: Mapping[str, Any]

    @property
    def any(self) -> TableState | None:
        return self.after or self.before

    @property
    def alone(self) -> bool:
        return self.changes <= 1


def find_modified_table(statement: Statement, context: CaptureContext, key: str = "changed") -> ModifiedTable | None:
    """By what was looked up when the statement had ended; None where nothing could be."""
    fields = statement.facts.looked_up.get(FORMAT, {}).get(key)
    if fields is None or "catalog" not in fields:
        return None
    catalog = context.catalog(fields["catalog"])
    spaces = fields["namespace"]
    table = TableName(catalog=catalog.name, database=joined(spaces), table=fields["name"])
    return ModifiedTable(catalog, table, fields.get("before"), fields.get("after"), fields.get("changes", 0), fields)


def event_fields(
    found: ModifiedTable, context: CaptureContext, cause: ModificationCause = ModificationCause.STATEMENT
) -> dict[str, Any]:
    """What every modification of a table tells."""
    state = found.any or {}
    return {
        "context": found.catalog.context,
        "identifier": found.table,
        "dataset": dataset_at(state.get("location"), found.catalog, found.table, context),
        "generation": generation_of(state),
        "format": Format.ICEBERG,
        "schema_id": state.get("schemaId") if found.alone else None,
        "cause": cause,
    }


def alter_event(
    found: ModifiedTable,
    changes: Iterable[TableChange],
    context: CaptureContext,
    cause: ModificationCause = ModificationCause.STATEMENT,
) -> AlterTable:
    applied = tuple(changes)
    before = None if found.before is None else table_of(found.before)
    return AlterTable(
        **event_fields(found, context, cause),
        changes=applied,
        table=before,
        new_table=_table_after(found, before, applied),
    )


def _table_after(found: ModifiedTable, before: Table | None, changes: tuple[TableChange, ...]) -> Table | None:
    """The changes applied; what the metadata says where they can't be, and nobody else can have changed it."""
    if before is not None:
        try:
            return apply(changes, before)
        except ChangeError:
            pass
    return table_of(found.after) if found.after is not None and found.alone else None


def unknown_change(what: str) -> Gap:
    detail = f"{what}: its table couldn't be looked up when the statement had ended"
    return Gap(reason=GapReason.NOT_EXACT, detail=detail)
