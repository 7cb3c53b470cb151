"""A table that a command changed otherwise than by rows: as its metadata was before the statement and after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater.events import AlterTable, Cause, Format, Gap, GapReason, Table, TableChange, TableName
from headwater.events.apply import ChangeError, apply
from headwater.events.identity.text import joined
from headwater.listeners.capture.formats.iceberg.places import dataset_at, life_of
from headwater.listeners.capture.formats.iceberg.tables import table_of
from headwater.listeners.capture.scene import NamedCatalog, Scene
from headwater.listeners.capture.statements import Statement

FORMAT: Final = "iceberg"

State = Mapping[str, Any]


@dataclass(frozen=True)
class Modified:
    catalog: NamedCatalog
    table: TableName
    before: State | None
    """None where there was no table, or where its metadata isn't kept any more."""
    after: State | None
    changes: int
    """How often its metadata changed while the statement ran. More than once: others changed it, too."""
    told: Mapping[str, Any]

    @property
    def any(self) -> State | None:
        return self.after or self.before

    @property
    def alone(self) -> bool:
        return self.changes <= 1


def modified(statement: Statement, scene: Scene, key: str = "changed") -> Modified | None:
    """By what was looked up when the statement had ended; None where nothing could be."""
    told = statement.facts.looked_up.get(FORMAT, {}).get(key)
    if told is None or "catalog" not in told:
        return None
    catalog = scene.catalog(told["catalog"])
    spaces = told["namespace"]
    table = TableName(catalog=catalog.name, database=joined(spaces) if spaces else "", table=told["name"])
    return Modified(catalog, table, told.get("before"), told.get("after"), told.get("changes", 0), told)


def about(found: Modified, scene: Scene, cause: Cause = Cause.STATEMENT) -> dict[str, Any]:
    """What every modification of a table tells."""
    state = found.any or {}
    return {
        "context": found.catalog.context,
        "identifier": found.table,
        "dataset": dataset_at(state.get("location"), found.catalog, found.table, scene),
        "life": life_of(state),
        "format": Format.ICEBERG,
        "schema_id": state.get("schemaId") if found.alone else None,
        "cause": cause,
    }


def altered(
    found: Modified, changes: Iterable[TableChange], scene: Scene, cause: Cause = Cause.STATEMENT
) -> AlterTable:
    told = tuple(changes)
    before = None if found.before is None else table_of(found.before)
    return AlterTable(**about(found, scene, cause), changes=told, table=before, new_table=_after(found, before, told))


def _after(found: Modified, before: Table | None, changes: tuple[TableChange, ...]) -> Table | None:
    """The changes applied; what the metadata says where they can't be, and nobody else can have changed it."""
    if before is not None:
        try:
            return apply(changes, before)
        except ChangeError:
            pass
    return table_of(found.after) if found.after is not None and found.alone else None


def unknown(what: str) -> Gap:
    detail = f"{what}: its table couldn't be looked up when the statement had ended"
    return Gap(reason=GapReason.NOT_EXACT, detail=detail)
