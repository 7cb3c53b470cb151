"""Changes of columns."""

from __future__ import annotations

from headwater.events.apply.names import ImpossibleChangeError, Names, listed, missing, spelled
from headwater.events.apply.paths import (
    NodeEdit,
    SchemaNode,
    SiblingsEdit,
    Walk,
    drop_references,
    joined,
    keep_references,
    parse_type,
    rename_references,
    renamed,
    retyped,
    spelling,
    with_comment,
    with_default,
    with_nullability,
)
from headwater.events.changes import (
    AddColumn,
    ChangeDefault,
    ChangeNullability,
    ColumnPosition,
    DropColumn,
    MoveColumn,
    RecommentColumn,
    RenameColumn,
    RetypeColumn,
)
from headwater.events.scalars import FieldPath
from headwater.events.tables import Column, Table
from headwater.events.types import StructField, to_json


def add_column(table: Table, change: AddColumn, names: Names) -> Table:
    """Spark puts what it evaluates a default to into EXISTS_DEFAULT: that isn't known here."""
    type_ = parse_type(change.type)
    columns = table.columns
    if len(change.path) == 1:
        column = Column(
            name=change.path[-1],
            type=to_json(type_),
            nullable=change.nullable,
            generated=change.generated,
            metadata=change.metadata,
        )
        return table.model_copy(update={"columns": _add_column(columns, column, change, names)})
    field = StructField(change.path[-1], type_, change.nullable)
    walk = Walk(change.path, names)
    return table.model_copy(
        update={"columns": walk.to_fields(columns, lambda fields: _add_column(fields, field, change, names))}
    )


def drop_column(table: Table, change: DropColumn, names: Names) -> Table:
    if change.if_exists and not Walk(change.path, names).leads_somewhere(table.columns):
        return table
    path = _spelled_path(table, change.path, names)

    def drop(siblings: tuple[SchemaNode, ...]) -> tuple[SchemaNode, ...]:
        return tuple([node for node in siblings if node.name != path[-1]])

    return _among_siblings(drop_references(table, path, names), path, names, drop)


def rename_column(table: Table, change: RenameColumn, names: Names) -> Table:
    path = _spelled_path(table, change.path, names)

    def rename(siblings: tuple[SchemaNode, ...]) -> tuple[SchemaNode, ...]:
        others = [node.name for node in siblings if node.name != path[-1]]
        if names.find(others, change.new_name) is not None:
            raise ImpossibleChangeError(f"{spelled(path)} can't be {change.new_name}: there is {listed(others)}")
        return tuple([renamed(node, change.new_name) if node.name == path[-1] else node for node in siblings])

    return rename_references(_among_siblings(table, path, names, rename), path, change.new_name, names)


def move_column(table: Table, change: MoveColumn, names: Names) -> Table:
    path = _spelled_path(table, change.path, names)

    def move(siblings: tuple[SchemaNode, ...]) -> tuple[SchemaNode, ...]:
        moved = next(node for node in siblings if node.name == path[-1])
        rest = tuple([node for node in siblings if node is not moved])
        return _insert_node(rest, moved, change.position, path, names)

    return _among_siblings(table, path, names, move)


def retype_column(table: Table, change: RetypeColumn, names: Names) -> Table:
    type_ = parse_type(change.type)
    path = spelling(table, change.path, names)

    def retype(node: SchemaNode) -> SchemaNode:
        return retyped(node, type_)

    return keep_references(table, _at_node(table, path, names, retype), path, names)


def recomment_column(table: Table, change: RecommentColumn, names: Names) -> Table:
    def recomment(node: SchemaNode) -> SchemaNode:
        return with_comment(node, change.comment)

    return _at_node(table, change.path, names, recomment)


def change_nullability(table: Table, change: ChangeNullability, names: Names) -> Table:
    def change_it(node: SchemaNode) -> SchemaNode:
        return with_nullability(node, nullable=change.nullable)

    return _at_node(table, change.path, names, change_it)


def change_default(table: Table, change: ChangeDefault, names: Names) -> Table:
    def change_it(node: SchemaNode) -> SchemaNode:
        return with_default(node, change.default)

    return _at_node(table, change.path, names, change_it)


def _at_node(table: Table, path: FieldPath, names: Names, edit: NodeEdit) -> Table:
    return table.model_copy(update={"columns": Walk(path, names).to_node(table.columns, edit)})


def _among_siblings(table: Table, path: FieldPath, names: Names, edit: SiblingsEdit) -> Table:
    return table.model_copy(update={"columns": Walk(path, names).to_siblings(table.columns, edit)})


def _spelled_path(table: Table, path: FieldPath, names: Names) -> FieldPath:
    """The path of a column that has a name and a place, as the table spells it."""
    return spelling(table, path, names)


def _add_column(
    siblings: tuple[SchemaNode, ...], node: SchemaNode, change: AddColumn, names: Names
) -> tuple[SchemaNode, ...]:
    there = [sibling.name for sibling in siblings]
    if names.find(there, node.name) is not None:
        raise ImpossibleChangeError(f"{spelled(change.path)} is there already; there is {listed(there)}")
    if change.comment is not None:
        node = with_comment(node, change.comment)
    if change.default is not None:
        node = with_default(node, change.default)
    return _insert_node(siblings, node, change.position, change.path, names)


def _insert_node(
    siblings: tuple[SchemaNode, ...], node: SchemaNode, position: ColumnPosition | None, path: FieldPath, names: Names
) -> tuple[SchemaNode, ...]:
    """Behind the others where no position is given."""
    if position is None:
        return joined(siblings, [node])
    if position.after is None:
        return joined([node], siblings)
    there = [sibling.name for sibling in siblings]
    index = names.find(there, position.after)
    if index is None:
        raise missing((*path[:-1], position.after), there)
    return joined(siblings[: index + 1], [node], siblings[index + 1 :])
