"""Finding and changing a column by its path, at any depth.

As in Spark, `element`, `key` and `value` lead into arrays and maps. What they lead to has a type and, but for a key,
may be null or not; it has no name, place, comment or default of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from headwater.events.apply.errors import ImpossibleChangeError, MissingColumnError, missing, spelled
from headwater.events.apply.names import Names
from headwater.events.apply.nodes import SchemaNode, joined, retyped, type_of
from headwater.events.scalars import FieldPath
from headwater.events.tables import Column
from headwater.events.types import ArrayType, DataType, MapType, StructField, StructType


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
