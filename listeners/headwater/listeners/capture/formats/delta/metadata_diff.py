"""What changed between two metaData actions of one table, as a list of changes that leads from one to the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from headwater.events.apply import ChangeError, apply
from headwater.events.changes import (
    AddConstraint,
    AddPartitionField,
    DropConstraint,
    DropPartitionField,
    OtherChange,
    RemoveProperty,
    SetComment,
    SetProperty,
    TableChange,
)
from headwater.events.tables import Column, Table, Transform
from headwater.listeners.capture.formats.delta.metadata import (
    PHYSICAL_NAME,
    columns_from_metadata,
    constraints_of,
    properties_of,
    table_of,
)
from headwater.listeners.capture.formats.schema_diff import Field, Fields, SchemaDiff, fields_in


def metadata_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[TableChange, ...]:
    return (*_columns(before, after), *_partitioning(before, after), *_configuration(before, after))


def _columns(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[TableChange, ...]:
    """Proved by applying them; changes that don't lead there aren't recorded one by one."""
    old, new = columns_from_metadata(before), columns_from_metadata(after)
    if old == new:
        return ()
    changes = tuple(_SCHEMA_DIFF.of(fields_in(before["schema"]), fields_in(after["schema"])))
    unbound = table_of({**before, "partitions": [], "configuration": {}}, "")
    try:
        if _visible_table(apply(changes, unbound, case_sensitive=True)) == _visible_table(
            unbound.model_copy(update={"columns": new})
        ):
            return changes
    except ChangeError:
        pass
    return (OtherChange(what="the schema"),)


def _visible_table(table: Table) -> list[tuple[object, ...]]:
    return [(c.name, c.type, c.nullable, c.comment, c.default) for c in table.columns]


def _pair_columns(old: Fields, new: Fields) -> Callable[[Field], str]:
    """By the physical name, which a rename keeps, where the table has one for each column; else by name."""
    physical = all(PHYSICAL_NAME in field.get("metadata", {}) for field in (*old, *new))
    return lambda field: str(field["metadata"][PHYSICAL_NAME] if physical else field["name"].lower())


def _column(field: Field) -> Column:
    return columns_from_metadata({"schema": json.dumps({"type": "struct", "fields": [field]})})[0]


_SCHEMA_DIFF: Final = SchemaDiff(_column, _pair_columns)


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
    yield from (DropConstraint(name=check.name) for check in checks if check not in new_checks)
    yield from (AddConstraint(constraint=check) for check in new_checks if check not in checks)
    if before.get("description") != after.get("description"):
        yield SetComment(comment=after.get("description"))
