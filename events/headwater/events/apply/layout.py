"""Changes of how a table is laid out and keyed: partition fields, ordering, clustering, primary key, constraints.

Changes of a table's properties, comment and owner.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headwater.events.apply.names import ImpossibleChangeError, Names, enumerated, listed, shown
from headwater.events.apply.paths import (
    PathChange,
    respelled_constraint,
    respelled_sort,
    respelled_transform,
    spelling,
)
from headwater.events.base import StringMap
from headwater.events.changes import (
    AddConstraint,
    AddPartitionField,
    DropConstraint,
    DropPartitionField,
    RemoveProperty,
    ReplacePartitionField,
    SetClustering,
    SetComment,
    SetLocation,
    SetOrdering,
    SetPrimaryKey,
    SetProperty,
)
from headwater.events.scalars import FieldPath
from headwater.events.tables import Constraint, ConstraintKind, Table, Transform

RESERVED: Final = frozenset({"comment", "location", "provider", "owner"})
"""Spark's TableCatalog keeps these among the properties; here they have places of their own."""


def set_property(table: Table, change: SetProperty, _names: Names) -> Table:
    if change.key in RESERVED:
        return table.model_copy(update={change.key: change.value})
    return table.model_copy(update={"properties": StringMap({**table.properties, change.key: change.value})})


def remove_property(table: Table, change: RemoveProperty, _names: Names) -> Table:
    """Removing what isn't there changes nothing, as in Spark."""
    if change.key in RESERVED:
        return table.model_copy(update={change.key: None})
    rest = {key: value for key, value in table.properties.items() if key != change.key}
    return table.model_copy(update={"properties": StringMap(rest)})


def set_comment(table: Table, change: SetComment, _names: Names) -> Table:
    return table.model_copy(update={"comment": change.comment})


def set_location(table: Table, change: SetLocation, _names: Names) -> Table:
    return table.model_copy(update={"location": change.location})


def no_change(table: Table, _change: object, _names: Names) -> Table:
    """Neither a table's name nor the values of its partitions are in its description, nor what has no word."""
    return table


def add_partition_field(table: Table, change: AddPartitionField, names: Names) -> Table:
    return _with_partitioning(table, _with_transform(table, table.partitioning, change.transform, names))


def drop_partition_field(table: Table, change: DropPartitionField, names: Names) -> Table:
    return _with_partitioning(table, _without_transform(table.partitioning, change.transform, names))


def replace_partition_field(table: Table, change: ReplacePartitionField, names: Names) -> Table:
    """The new field comes last, as in Iceberg, where a field that is replaced is dropped and another one added."""
    rest = _without_transform(table.partitioning, change.transform, names)
    return _with_partitioning(table, _with_transform(table, rest, change.new_transform, names))


def set_ordering(table: Table, change: SetOrdering, names: Names) -> Table:
    spell = _spelling_of(table, names)
    return table.model_copy(update={"ordering": tuple([respelled_sort(field, spell) for field in change.ordering])})


def set_clustering(table: Table, change: SetClustering, names: Names) -> Table:
    return table.model_copy(update={"clustering": _columns(table, change.columns, names)})


def set_primary_key(table: Table, change: SetPrimaryKey, names: Names) -> Table:
    return table.model_copy(update={"primary_key": _columns(table, change.columns, names)})


def add_constraint(table: Table, change: AddConstraint, names: Names) -> Table:
    """A primary key that is given as a constraint is the table's primary key as well."""
    constraint = respelled_constraint(change.constraint, _spelling_of(table, names))
    there = [known.name for known in table.constraints]
    if names.find(there, constraint.name) is not None:
        raise ImpossibleChangeError(f"constraint {constraint.name} is there already; there is {listed(there)}")
    update: dict[str, object] = {"constraints": (*table.constraints, constraint)}
    if constraint.kind is ConstraintKind.PRIMARY_KEY:
        update["primary_key"] = _only_key(table, constraint, names)
    return table.model_copy(update=update)


def drop_constraint(table: Table, change: DropConstraint, names: Names) -> Table:
    there = [known.name for known in table.constraints]
    index = names.find(there, change.name)
    if index is None:
        raise ImpossibleChangeError(f"there is no constraint {change.name}; there is {listed(there)}")
    constraint = table.constraints[index]
    update: dict[str, object] = {"constraints": (*table.constraints[:index], *table.constraints[index + 1 :])}
    if constraint.kind is ConstraintKind.PRIMARY_KEY and names.same_paths(constraint.columns, table.primary_key):
        update["primary_key"] = ()
    return table.model_copy(update=update)


def _only_key(table: Table, constraint: Constraint, names: Names) -> tuple[FieldPath, ...]:
    if table.primary_key and not names.same_paths(table.primary_key, constraint.columns):
        raise ImpossibleChangeError(f"{constraint.name} would be a second primary key")
    return constraint.columns


def _with_partitioning(table: Table, partitioning: tuple[Transform, ...]) -> Table:
    return table.model_copy(update={"partitioning": partitioning})


def _with_transform(
    table: Table, there: tuple[Transform, ...], transform: Transform, names: Names
) -> tuple[Transform, ...]:
    if _find(there, transform, names) is not None:
        raise ImpossibleChangeError(f"partition field {shown(transform)} is there already")
    return (*there, respelled_transform(transform, _spelling_of(table, names)))


def _without_transform(there: tuple[Transform, ...], transform: Transform, names: Names) -> tuple[Transform, ...]:
    index = _find(there, transform, names)
    if index is None:
        raise ImpossibleChangeError(
            f"there is no partition field {shown(transform)}; there is {_list_transforms(there)}"
        )
    return (*there[:index], *there[index + 1 :])


def _list_transforms(transforms: Iterable[Transform]) -> str:
    return enumerated([shown(transform) for transform in transforms])


def _find(there: Iterable[Transform], transform: Transform, names: Names) -> int | None:
    return next((index for index, other in enumerate(there) if _are_same(other, transform, names)), None)


def _are_same(one: Transform, other: Transform, names: Names) -> bool:
    if not (one.columns and other.columns):
        return None not in (one.field_name, other.field_name) and one.field_name == other.field_name
    alike = (one.name.lower(), one.arguments) == (other.name.lower(), other.arguments)
    return alike and names.same_paths(one.columns, other.columns)


def _columns(table: Table, columns: Iterable[FieldPath], names: Names) -> tuple[FieldPath, ...]:
    return tuple(map(_spelling_of(table, names), columns))


def _spelling_of(table: Table, names: Names) -> PathChange:
    return lambda path: spelling(table, path, names)
