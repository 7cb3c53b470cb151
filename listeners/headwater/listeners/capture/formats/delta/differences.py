"""What changed between two metaData actions of one table, as a list of changes that leads from one to the other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from headwater.events import (
    AddColumn,
    AddConstraint,
    AddPartitionField,
    ChangeDefault,
    ChangeNullability,
    DropColumn,
    DropConstraint,
    DropPartitionField,
    FieldPath,
    MoveColumn,
    OtherChange,
    Position,
    RecommentColumn,
    RemoveProperty,
    RenameColumn,
    RetypeColumn,
    SetComment,
    SetProperty,
    TableChange,
    Transform,
)
from headwater.events.apply import ChangeError, apply
from headwater.events.tables import Column, Table
from headwater.listeners.capture.formats.delta.metadata import (
    PHYSICAL_NAME,
    columns_from_metadata,
    constraints_of,
    properties_of,
    table_of,
)

_INSIDE: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "array": (("elementType", "element"),),
    "map": (("keyType", "key"), ("valueType", "value")),
}
"""Where types stand in a type, and what a path calls that."""

Field = Mapping[str, Any]


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[TableChange, ...]:
    return (*_columns(before, after), *_partitioning(before, after), *_configuration(before, after))


def _columns(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[TableChange, ...]:
    """Proved by applying them; changes that don't lead there aren't told one by one."""
    old, new = columns_from_metadata(before), columns_from_metadata(after)
    if old == new:
        return ()
    changes = tuple(_fields(_schema(before), _schema(after), ()))
    unbound = table_of({**before, "partitions": [], "configuration": {}}, "")
    try:
        if _shown(apply(changes, unbound, case_sensitive=True)) == _shown(unbound.model_copy(update={"columns": new})):
            return changes
    except ChangeError:
        pass
    return (OtherChange(what="the schema"),)


def _shown(table: Table) -> list[tuple[object, ...]]:
    return [(c.name, c.type, c.nullable, c.comment, c.default) for c in table.columns]


def _schema(metadata: Mapping[str, Any]) -> list[Field]:
    fields: list[Field] = json.loads(metadata["schema"])["fields"]
    return fields


def _fields(old: Sequence[Field], new: Sequence[Field], path: FieldPath) -> Iterator[TableChange]:
    pairs = _paired(old, new)
    kept = {before["name"]: after["name"] for before, after in pairs}
    for field in old:
        if field["name"] not in kept:
            yield DropColumn(path=(*path, field["name"]))
    for name, new_name in kept.items():
        if name != new_name:
            yield RenameColumn(path=(*path, name), new_name=new_name)
    yield from _order([kept[f["name"]] for f in old if f["name"] in kept], new, path)
    for before, after in pairs:
        yield from _field(before, after, (*path, after["name"]))


def _paired(old: Sequence[Field], new: Sequence[Field]) -> list[tuple[Field, Field]]:
    """By the physical name, which a rename keeps, where the table has one for each column; else by name."""
    physical = all(PHYSICAL_NAME in field.get("metadata", {}) for field in (*old, *new))

    def key(field: Field) -> str:
        return str(field["metadata"][PHYSICAL_NAME] if physical else field["name"].lower())

    there = {key(field): field for field in new}
    return [(field, there[key(field)]) for field in old if key(field) in there]


def _order(kept: list[str], new: Sequence[Field], path: FieldPath) -> Iterator[TableChange]:
    """Moves what stands elsewhere, and adds what is new, from the first place to the last."""
    order, names = list(kept), [field["name"] for field in new]
    for place, field in enumerate(new):
        name = field["name"]
        position = Position(after=names[place - 1] if place else None)
        if name not in kept:
            yield _added(field, (*path, name), None if place == len(order) else position)
            order.insert(place, name)
        elif order[place] != name:
            yield MoveColumn(path=(*path, name), position=position)
            order.remove(name)
            order.insert(place, name)


def _added(field: Field, path: FieldPath, position: Position | None) -> AddColumn:
    column = _column(field)
    return AddColumn(
        path=path,
        type=column.type,
        nullable=column.nullable,
        comment=column.comment,
        default=column.default,
        generated=column.generated,
        metadata=column.metadata,
        position=position,
    )


def _column(field: Field) -> Column:
    return columns_from_metadata({"schema": json.dumps({"type": "struct", "fields": [field]})})[0]


def _field(old: Field, new: Field, path: FieldPath) -> Iterator[TableChange]:
    before, after = _column(old), _column({**new, "name": old["name"]})
    if before.type != after.type:
        yield from _type(old["type"], new["type"], path)
    if before.nullable != after.nullable:
        yield ChangeNullability(path=path, nullable=after.nullable)
    if before.comment != after.comment:
        yield RecommentColumn(path=path, comment=after.comment)
    if before.default != after.default:
        yield ChangeDefault(path=path, default=after.default)


def _type(old: Any, new: Any, path: FieldPath) -> Iterator[TableChange]:
    kinds = {each.get("type") if isinstance(each, dict) else None for each in (old, new)}
    if kinds == {"struct"}:
        yield from _fields(old["fields"], new["fields"], path)
        return
    inside = _INSIDE.get(next(iter(kinds)) or "", ()) if len(kinds) == 1 else ()
    if inside:
        for key, word in inside:
            if old[key] != new[key]:
                yield from _type(old[key], new[key], (*path, word))
        return
    written = _column({"name": "x", "type": new, "nullable": True, "metadata": {}})
    yield RetypeColumn(path=path, type=written.type)


def _partitioning(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[TableChange]:
    old, new = before.get("partitions", []), after.get("partitions", [])
    if old == new:
        return
    for name in old:
        yield DropPartitionField(transform=Transform(columns=((name,),)))
    for name in new:
        yield AddPartitionField(transform=Transform(columns=((name,),)))


def _configuration(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[TableChange]:
    old, new = properties_of(before["configuration"]), properties_of(after["configuration"])
    yield from (SetProperty(key=key, value=text) for key, text in new.items() if old.get(key) != text)
    yield from (RemoveProperty(key=key) for key in old if key not in new)
    checks, new_checks = constraints_of(before["configuration"]), constraints_of(after["configuration"])
    yield from (DropConstraint(name=each.name) for each in checks if each not in new_checks)
    yield from (AddConstraint(constraint=each) for each in new_checks if each not in checks)
    if before.get("description") != after.get("description"):
        yield SetComment(comment=after.get("description"))
