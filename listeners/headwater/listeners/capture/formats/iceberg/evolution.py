"""How a write changed a table's schema: it may, where the table takes any schema and the write merges its own."""

from __future__ import annotations

from typing import Final

from headwater.events import AlterTable, Cause, Effect
from headwater.listeners.capture.formats.iceberg.modified import FORMAT, Modified, altered
from headwater.listeners.capture.formats.protocol import Target
from headwater.listeners.capture.formats.schemas import Differences, fields_in
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Statement

_OWN_CHANGES: Final = 2
"""The schema, and then the data."""


def evolved(target: Target, statement: Statement, scene: Scene) -> tuple[AlterTable, ...]:
    told = statement.facts.looked_up.get(FORMAT, {}).get("evolved", {}).get(target.hints.get("location"))
    if told is None or "before" not in told or target.catalog is None or target.sink.table is None:
        return ()
    changes = tuple(Differences().of(fields_in(told["before"]["schema"]), fields_in(told["schema"])))
    if not changes:
        return ()
    found = Modified(target.catalog, target.sink.table, told["before"], told.get("after"), told["changes"], told)
    event = altered(found, changes, scene, Cause.WRITE)
    update: dict[str, object] = {"schema_id": told["schemaId"], "on_branch": target.sink.branch}
    if told["changes"] > _OWN_CHANGES:
        update["effect"] = Effect.UNKNOWN
    return (event.model_copy(update=update),)
