"""What of a table refers to its columns: partitioning, ordering, clustering, keys, watermarks, constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from headwater.events.apply.errors import ImpossibleChangeError, spelled
from headwater.events.apply.names import Names
from headwater.events.apply.paths import Walk
from headwater.events.scalars import FieldPath
from headwater.events.tables import Constraint, ConstraintKind, SortField, Table, Transform

PathChange: TypeAlias = Callable[[FieldPath], FieldPath]


def spelling(table: Table, path: FieldPath, names: Names) -> FieldPath:
    """The path of a column that must be there, as the table spells it."""
    return Walk(path, names).spelling(table.columns)


def rename_references(table: Table, path: FieldPath, new_name: str, names: Names) -> Table:
    """The texts of expressions (checks, defaults, generated columns) are left as they were recorded."""
    last = len(path) - 1

    def renamed(reference: FieldPath) -> FieldPath:
        if not names.starts_with(reference, path):
            return reference
        return (*reference[:last], new_name, *reference[last + 1 :])

    return respelled(table, renamed)


def drop_references(table: Table, path: FieldPath, names: Names) -> Table:
    """NOT NULL goes with its column. Whatever else refers to a column must be dropped before it: no format drops such
    a column, and what would become of the reference isn't known."""
    kept = tuple([constraint for constraint in table.constraints if not _goes_with(constraint, path, names)])
    for what, reference in _references(table.model_copy(update={"constraints": kept})):
        if names.starts_with(reference, path):
            raise ImpossibleChangeError(f"{spelled(path)} can't be dropped: {what} has {spelled(reference)}")
    return table if kept == table.constraints else table.model_copy(update={"constraints": kept})


def keep_references(before: Table, after: Table, path: FieldPath, names: Names) -> Table:
    """A new type must still hold every field in it that something refers to."""
    for what, reference in _references(before):
        if not names.starts_with(reference, path) or Walk(reference, names).leads_somewhere(after.columns):
            continue
        raise ImpossibleChangeError(f"the new type of {spelled(path)} lacks {spelled(reference)}, which {what} has")
    return after


def respelled(table: Table, change: PathChange) -> Table:
    """The table with every reference changed; the same object where none is."""
    update = {
        "partitioning": tuple([respelled_transform(transform, change) for transform in table.partitioning]),
        "ordering": tuple([respelled_sort(field, change) for field in table.ordering]),
        "clustering": tuple(map(change, table.clustering)),
        "primary_key": tuple(map(change, table.primary_key)),
        "watermarks": tuple([mark.model_copy(update={"column": change(mark.column)}) for mark in table.watermarks]),
        "constraints": tuple([respelled_constraint(constraint, change) for constraint in table.constraints]),
    }
    return table.model_copy(update=update)


def respelled_transform(transform: Transform, change: PathChange) -> Transform:
    return transform.model_copy(update={"columns": tuple(map(change, transform.columns))})


def respelled_sort(field: SortField, change: PathChange) -> SortField:
    return field.model_copy(update={"by": respelled_transform(field.by, change)})


def respelled_constraint(constraint: Constraint, change: PathChange) -> Constraint:
    return constraint.model_copy(update={"columns": tuple(map(change, constraint.columns))})


def _goes_with(constraint: Constraint, path: FieldPath, names: Names) -> bool:
    is_not_null = constraint.kind is ConstraintKind.NOT_NULL
    return is_not_null and all(names.starts_with(column, path) for column in constraint.columns)


def _references(table: Table) -> Iterator[tuple[str, FieldPath]]:
    """Every reference, and what it is part of."""
    yield from _each("the partitioning", table.partition_keys)
    yield from _each("the ordering", [column for field in table.ordering for column in field.by.columns])
    yield from _each("the clustering", table.clustering)
    yield from _each("the primary key", table.primary_key)
    yield from _each("a watermark", [watermark.column for watermark in table.watermarks])
    for constraint in table.constraints:
        yield from _each(f"constraint {constraint.name}", constraint.columns)


def _each(what: str, columns: Iterable[FieldPath]) -> Iterator[tuple[str, FieldPath]]:
    return ((what, column) for column in columns)
