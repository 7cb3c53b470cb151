"""Tables and changes that can happen to them, for hypothesis."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

from headwater.events.apply import ChangeError, apply
from headwater.events.base import StringMap
from headwater.events.changes import (
    AddColumn,
    ChangeDefault,
    ChangeNullability,
    ColumnPosition,
    DropColumn,
    MoveColumn,
    RecommentColumn,
    RemoveProperty,
    RenameColumn,
    RetypeColumn,
    SetComment,
    SetProperty,
    TableChange,
)
from headwater.events.scalars import FieldPath
from headwater.events.tables import Column, Constraint, ConstraintKind, SortField, Table, Transform, Watermark
from headwater.events.types import ArrayType, DataType, MapType, StructField, StructType, parse_json, to_json
from tests.kit.columns.ddl import type_of

NAMES = st.sampled_from(["a", "b", "c", "d", "key", "value", "element", "x.y", "É"])
NEW_NAMES = st.sampled_from(["new", "a", "b", "c", "NEW", "n.w"])
TEXTS = st.none() | st.sampled_from(["", "a comment", 'it\'s \\ "quoted"'])
DEFAULTS = st.sampled_from([None, "NULL"])
"""Spark evaluates a default, so it must fit whatever type the column has."""
ATOMS = st.sampled_from(["int", "string", "decimal(10,2)", "timestamp_ntz"]).map(type_of)


def _containers(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    fields = st.lists(
        st.builds(StructField, NAMES, inner, st.booleans()), min_size=1, max_size=3, unique_by=lambda f: f.name
    )
    return st.one_of(
        st.builds(ArrayType, inner, st.booleans()),
        st.builds(MapType, ATOMS, inner, st.booleans()),
        fields.map(lambda some: StructType(tuple(some))),
    )


TYPES = st.recursive(ATOMS, _containers, max_leaves=5)
COLUMNS = st.builds(Column, name=NAMES, type=TYPES.map(to_json), nullable=st.booleans(), comment=TEXTS)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    columns = draw(st.lists(COLUMNS, min_size=1, max_size=5, unique_by=lambda column: column.name))
    reference = st.sampled_from([(column.name,) for column in columns])
    references = st.lists(reference, max_size=2, unique=True).map(tuple)
    transforms = st.builds(Transform, name=st.sampled_from(["identity", "days"]), columns=st.tuples(reference))
    return Table(
        columns=tuple(columns),
        partitioning=tuple(draw(st.lists(transforms, max_size=2, unique=True))),
        ordering=tuple([SortField(by=transform) for transform in draw(st.lists(transforms, max_size=1))]),
        clustering=draw(references),
        primary_key=draw(references),
        watermarks=tuple([Watermark(column=path, delay="1 minute") for path in draw(st.lists(reference, max_size=1))]),
        constraints=tuple(
            [
                Constraint(name="u", kind=ConstraintKind.UNIQUE, columns=(path,))
                for path in draw(st.lists(reference, max_size=1))
            ]
        ),
        properties=draw(st.dictionaries(st.sampled_from("pqr"), st.text("xy", max_size=2)).map(StringMap)),
        comment=draw(TEXTS),
    )


class Place(NamedTuple):
    path: FieldPath
    siblings: tuple[str, ...]
    """The names beside it, its own too; none where it is an element, a key or a value."""
    doubly_inside: bool = False
    """Inside an array or a map that is directly in another one: formats get there, Spark's helper doesn't."""


def places(table: Table) -> list[Place]:
    """Everything in a table that a path can lead to."""
    names = tuple([column.name for column in table.columns])
    return [
        place
        for column in table.columns
        for place in [Place((column.name,), names), *_inside((column.name,), parse_json(column.type))]
    ]


def _inside(path: FieldPath, type_: DataType, *, in_container: bool = False, doubly: bool = False) -> list[Place]:
    if isinstance(type_, StructType):
        names = tuple([field.name for field in type_.fields])
        return [
            place
            for field in type_.fields
            for place in [
                Place((*path, field.name), names, doubly),
                *_inside((*path, field.name), field.type, doubly=doubly),
            ]
        ]
    inner = {"element": type_.element} if isinstance(type_, ArrayType) else {}
    inner = {"key": type_.key, "value": type_.value} if isinstance(type_, MapType) else inner
    doubly = doubly or in_container
    return [
        place
        for step, child in inner.items()
        for place in [
            Place((*path, step), (), doubly),
            *_inside((*path, step), child, in_container=True, doubly=doubly),
        ]
    ]


@st.composite
def column_changes(draw: st.DrawFn, table: Table, *, as_spark: bool = False) -> TableChange:
    """A change of a column that is there, or of the place where a new one goes."""
    place = draw(st.sampled_from([place for place in places(table) if not (as_spark and place.doubly_inside)]))
    path, others = place.path, [name for name in place.siblings if name != place.path[-1]]
    after = st.sampled_from([*others, place.path[-1]]) if others else st.none()
    choices: list[st.SearchStrategy[TableChange]] = [
        st.builds(RetypeColumn, path=st.just(path), type=TYPES.map(to_json)),
        st.builds(ChangeNullability, path=st.just(path), nullable=st.booleans()),
    ]
    if place.siblings:
        position = st.builds(ColumnPosition, after=st.none() | after)
        choices += [
            st.builds(DropColumn, path=st.just(path), if_exists=st.booleans()),
            st.builds(RenameColumn, path=st.just(path), new_name=NEW_NAMES),
            st.builds(MoveColumn, path=st.just(path), position=position),
            st.builds(RecommentColumn, path=st.just(path), comment=st.sampled_from(["", "new comment"])),
            st.builds(ChangeDefault, path=st.just(path), default=DEFAULTS),
            st.builds(
                AddColumn,
                path=NEW_NAMES.map(lambda name: (*path[:-1], name)),
                type=TYPES.map(to_json),
                nullable=st.booleans(),
                comment=TEXTS,
                position=st.none() | position,
            ),
        ]
    return draw(st.one_of(choices))


@st.composite
def histories(draw: st.DrawFn, *, as_spark: bool = False) -> tuple[Table, list[TableChange]]:
    """A table and a list of changes that can happen to it, one after the other;
    those that Spark's helper for its own catalogs can tell, if `as_spark`."""
    first = table = draw(tables())
    changes: list[TableChange] = []
    others: list[st.SearchStrategy[TableChange]] = [
        st.builds(SetProperty, key=st.sampled_from(["p", "comment", "owner"]), value=st.text("xy", max_size=2)),
        st.builds(RemoveProperty, key=st.sampled_from(["p", "comment", "owner"])),
        st.builds(SetComment, comment=TEXTS),
    ]
    for _ in range(draw(st.integers(0, 6))):
        if not table.columns:
            break
        change = draw(column_changes(table, as_spark=True) if as_spark else st.one_of(column_changes(table), *others))
        try:
            table = apply([change], table, case_sensitive=True)
        except ChangeError:
            continue
        changes.append(change)
    return first, changes
