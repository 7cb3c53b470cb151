"""How a write changed a table's schema: it may, where the table takes any schema and the write merges its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from headwater.events import AddColumn, AlterTable, Cause, Effect, FieldPath, Position, RetypeColumn, TableChange
from headwater.events.tables import Column
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.formats.iceberg.modified import FORMAT, Modified, altered
from headwater.listeners.capture.formats.protocol import Target
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Statement

_INSIDE: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "array": (("elementType", "element"),),
    "map": (("keyType", "key"), ("valueType", "value")),
}
_OWN_CHANGES: Final = 2
"""The schema, and then the data."""

Field = Mapping[str, Any]


def evolved(target: Target, statement: Statement, scene: Scene) -> tuple[AlterTable, ...]:
    told = statement.facts.looked_up.get(FORMAT, {}).get("evolved", {}).get(target.hints.get("location"))
    if told is None or "before" not in told or target.catalog is None or target.sink.table is None:
        return ()
    changes = tuple(additions(told["before"]["schema"], told["schema"]))
    if not changes:
        return ()
    found = Modified(target.catalog, target.sink.table, told["before"], told.get("after"), told["changes"], told)
    event = altered(found, changes, scene, Cause.WRITE)
    update: dict[str, object] = {"schema_id": told["schemaId"], "on_branch": target.sink.branch}
    if told["changes"] > _OWN_CHANGES:
        update["effect"] = Effect.UNKNOWN
    return (event.model_copy(update=update),)


def additions(before: str, after: str) -> Iterator[TableChange]:
    """What merging schemas can do: add fields, and widen types."""
    yield from _fields(json.loads(before)["fields"], json.loads(after)["fields"], ())


def _fields(old: Sequence[Field], new: Sequence[Field], path: FieldPath) -> Iterator[TableChange]:
    there = {field["name"]: field for field in old}
    names = [field["name"] for field in new]
    order = [name for name in names if name in there]
    for place, field in enumerate(new):
        name = field["name"]
        if name in there:
            yield from _type(there[name]["type"], field["type"], (*path, name))
            continue
        last = place == len(order)
        yield _added(field, (*path, name), None if last else Position(after=names[place - 1] if place else None))
        order.insert(place, name)


def _added(field: Field, path: FieldPath, position: Position | None) -> AddColumn:
    column = _column(field)
    return AddColumn(path=path, type=column.type, nullable=column.nullable, comment=column.comment, position=position)


def _column(field: Field) -> Column:
    return columns_from_schema_json(json.dumps({"type": "struct", "fields": [field]}))[0]


def _type(old: Any, new: Any, path: FieldPath) -> Iterator[TableChange]:
    if old == new:
        return
    if not isinstance(old, dict) or not isinstance(new, dict):
        column = _column({"name": path[-1], "type": new, "nullable": True, "metadata": {}})
        yield RetypeColumn(path=path, type=column.type)
    elif old["type"] == "struct":
        yield from _fields(old["fields"], new["fields"], path)
    else:
        for key, word in _INSIDE.get(old["type"], ()):
            yield from _type(old[key], new[key], (*path, word))
