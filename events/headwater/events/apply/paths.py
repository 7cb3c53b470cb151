"""Finding and changing a column by its path, at any depth.

As in Spark, `element`, `key` and `value` lead into arrays and maps. What they lead to has a type and, but for a key,
may be null or not; it has no name, place, comment or default of its own.

A column of a table and a field of a struct are changed alike; here is where they differ.

What of a table refers to its columns: partitioning, ordering, clustering, keys, watermarks, constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Protocol, TypeAlias, TypeVar

from headwater.events.apply.names import ImpossibleChangeError, MissingColumnError, Names, missing, spelled
from headwater.events.scalars import FieldPath
from headwater.events.tables import Column, Constraint, ConstraintKind, SortField, Table, Transform
from headwater.events.types import (
    MAX_NESTING,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    TypeTextError,
    parse_json,
    with_type,
)
from headwater.events.types.columns import CURRENT_DEFAULT
from headwater.events.types.json_text import dumps
from headwater.events.types.short_text import COMMENT
from headwater.events.types.spark_json import metadata_entries
from headwater.events.types.tree import nesting

SchemaNode = TypeVar("SchemaNode", Column, StructField)


def joined(*parts: Iterable[SchemaNode]) -> tuple[SchemaNode, ...]:
    return tuple(chain.from_iterable(parts))


def type_of(node: Column | StructField) -> DataType:
    return parse_type(node.type) if isinstance(node, Column) else node.type


def parse_type(text: str) -> DataType:
    try:
        return parse_json(text)
    except TypeTextError as error:
        raise ImpossibleChangeError(f"the type can't be read: {error}") from error


def retyped(node: SchemaNode, type_: DataType) -> SchemaNode:
    if isinstance(node, StructField):
        return replace(node, type=type_)
    if nesting(type_) > MAX_NESTING:
        raise ImpossibleChangeError(f"more than {MAX_NESTING} types in each other in {node.name}")
    return with_type(node, type_)


def renamed(node: SchemaNode, name: str) -> SchemaNode:
    if isinstance(node, StructField):
        return replace(node, name=name)
    return node.model_copy(update={"name": name})


def with_nullability(node: SchemaNode, *, nullable: bool) -> SchemaNode:
    if isinstance(node, StructField):
        return replace(node, nullable=nullable)
    return node.model_copy(update={"nullable": nullable})


def with_comment(node: SchemaNode, comment: str | None) -> SchemaNode:
    if isinstance(node, StructField):
        return _with_entry(node, COMMENT, comment)
    return node.model_copy(update={"comment": comment})


def with_default(node: SchemaNode, default: str | None) -> SchemaNode:
    """Spark takes an empty text for no default. What rows written before read (EXISTS_DEFAULT) stays as it is."""
    if isinstance(node, StructField):
        return _with_entry(node, CURRENT_DEFAULT, default or None)
    return node.model_copy(update={"default": default or None})


def _with_entry(field: StructField, key: str, value: str | None) -> StructField:
    entries = metadata_entries(field.metadata)
    if value is None:
        entries.pop(key, None)
    else:
        entries[key] = value
    return replace(field, metadata=dumps(entries))


class NodeEdit(Protocol):
    def __call__(self, node: SchemaNode, /) -> SchemaNode: ...


class SiblingsEdit(Protocol):
    def __call__(self, siblings: tuple[SchemaNode, ...], /) -> tuple[SchemaNode, ...]: ...


class Walk:
    """One way along one path. `path` is named in errors, from the top."""

    def __init__(self, path: FieldPath, names: Names) -> None:
        self._path = path
        self._names = names

    def to_node(self, columns: tuple[Column, ...], edit: NodeEdit) -> tuple[Column, ...]:
        """The columns with what stands at the path changed."""
        return self._in_siblings(columns, 0, len(self._path), edit)

    def to_siblings(self, columns: tuple[Column, ...], edit: SiblingsEdit) -> tuple[Column, ...]:
        """The columns with those, among which the last name of the path stands, changed."""
        return edit(columns) if len(self._path) == 1 else self.to_fields(columns, edit)

    def to_fields(
        self, columns: tuple[Column, ...], edit: Callable[[tuple[StructField, ...]], tuple[StructField, ...]]
    ) -> tuple[Column, ...]:
        """The same for a path that leads into a column."""

        def within(node: SchemaNode) -> SchemaNode:
            parent = type_of(node)
            if not isinstance(parent, StructType):
                raise ImpossibleChangeError(f"{spelled(self._path[:-1])} is no struct: nothing in it has a name")
            return retyped(node, StructType(edit(parent.fields)))

        return self._in_siblings(columns, 0, len(self._path) - 1, within)

    def spelling(self, columns: tuple[Column, ...]) -> FieldPath:
        """The path as the columns spell it; one that leads nowhere raises MissingColumnError."""
        found: list[str] = []
        children: tuple[Column | StructField, ...] = columns
        for at in range(len(self._path)):
            child = children[self._find([child.name for child in children], at)]
            found.append(child.name)
            children = _children(type_of(child)) if len(found) < len(self._path) else ()
        return tuple(found)

    def leads_somewhere(self, columns: tuple[Column, ...]) -> bool:
        try:
            return bool(self.spelling(columns))
        except MissingColumnError:
            return False

    def _find(self, there: list[str], at: int) -> int:
        index = self._names.find(there, self._path[at])
        if index is None:
            raise missing(self._path[: at + 1], there)
        return index

    def _in_siblings(
        self, siblings: tuple[SchemaNode, ...], at: int, end: int, edit: NodeEdit
    ) -> tuple[SchemaNode, ...]:
        index = self._find([node.name for node in siblings], at)
        node = siblings[index]
        changed = edit(node) if at + 1 == end else retyped(node, self._in_type(type_of(node), at + 1, end, edit))
        return joined(siblings[:index], [changed], siblings[index + 1 :])

    def _in_type(self, type_: DataType, at: int, end: int, edit: NodeEdit) -> DataType:
        changed = self._in_siblings(_children(type_), at, end, edit)
        if isinstance(type_, ArrayType):
            return ArrayType(changed[0].type, changed[0].nullable)
        if isinstance(type_, MapType):
            return MapType(changed[0].type, changed[1].type, changed[1].nullable)
        return StructType(changed)


def _children(type_: DataType) -> tuple[StructField, ...]:
    if isinstance(type_, StructType):
        return type_.fields
    if isinstance(type_, ArrayType):
        return (StructField("element", type_.element, type_.contains_null),)
    if isinstance(type_, MapType):
        return (
            StructField("key", type_.key, nullable=False),
            StructField("value", type_.value, type_.value_contains_null),
        )
    return ()


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
