"""Changes that can't have happened to a table, and what is recorded of them."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.errors import TerminalError
from headwater.events.apply import ChangeError, apply
from headwater.events.changes import (
    AddColumn,
    AddConstraint,
    AddPartitionField,
    ChangeDefault,
    ChangeNullability,
    ColumnPosition,
    DropColumn,
    DropConstraint,
    DropPartitionField,
    MoveColumn,
    RecommentColumn,
    RenameColumn,
    ReplacePartitionField,
    RetypeColumn,
    SetClustering,
    SetOrdering,
    SetPrimaryKey,
    SetProperty,
    TableChange,
)
from headwater.events.tables import (
    Column,
    Constraint,
    ConstraintKind,
    SortField,
    Table,
    Transform,
    Watermark,
)
from headwater.events.types import MAX_NESTING, columns_from_schema_json, to_json
from tests.kit.columns.ddl import type_of

INT = '"integer"'
ID = Transform(columns=(("id",),))


def table(ddl: str, **more: Any) -> Table:
    return Table(columns=columns_from_schema_json(to_json(type_of(ddl))), **more)


def path(text: str) -> tuple[str, ...]:
    return tuple(text.split("."))


def key(name: str, column: str) -> Constraint:
    return Constraint(name=name, kind=ConstraintKind.PRIMARY_KEY, columns=((column,),))


BEFORE = table(
    "id int, s struct<a: int, b: int>, l array<int>, m map<int, int>, x int, X int",
    partitioning=(ID, Transform(name="bucket", columns=(("s", "a"),), arguments=("4",))),
    primary_key=(("id",),),
    constraints=(key("pk", "id"),),
)

IMPOSSIBLE: list[tuple[TableChange, str]] = [
    (AddColumn(path=path("ID"), type=INT), "ID is there already; there is id, s, l, m, x, X"),
    (AddColumn(path=path("s.A"), type=INT), "s.A is there already; there is a, b"),
    (AddColumn(path=path("t.a"), type=INT), "there is no column t; there is id, s, l, m, x, X"),
    (AddColumn(path=path("id.a"), type=INT), "id is no struct: nothing in it has a name"),
    (AddColumn(path=path("l.element.a"), type=INT), "l.element is no struct"),
    (AddColumn(path=path("l.a"), type=INT), "l is no struct"),
    (AddColumn(path=path("y"), type=INT, position=ColumnPosition(after="z")), "there is no column z; there is"),
    (
        AddColumn(path=path("s.y"), type=INT, position=ColumnPosition(after="id")),
        "there is no column s.id; there is a, b",
    ),
    (AddColumn(path=path("y"), type="int"), "the type can't be read: not JSON"),
    (DropColumn(path=path("y")), "there is no column y; there is id, s, l, m, x, X"),
    (DropColumn(path=path("s.y")), "there is no column s.y; there is a, b"),
    (DropColumn(path=path("l.element")), "l is no struct"),
    (DropColumn(path=path("m.key")), "m is no struct"),
    (DropColumn(path=path("id")), "id can't be dropped: the partitioning has id"),
    (DropColumn(path=path("s")), "s can't be dropped: the partitioning has s.a"),
    (RenameColumn(path=path("y"), new_name="z"), "there is no column y"),
    (RenameColumn(path=path("id"), new_name="S"), "id can't be S: there is s, l, m, x, X"),
    (RenameColumn(path=path("s.a"), new_name="B"), "s.a can't be B: there is b"),
    (RenameColumn(path=path("l.element"), new_name="item"), "l is no struct"),
    (RenameColumn(path=path("id"), new_name="x"), "id can't be x"),
    (RetypeColumn(path=path("y"), type=INT), "there is no column y"),
    (RetypeColumn(path=path("m.y"), type=INT), "there is no column m.y; there is key, value"),
    (RetypeColumn(path=path("id.y"), type=INT), "there is no column id.y; there is nothing"),
    (RetypeColumn(path=path("s"), type=INT), "the new type of s lacks s.a, which the partitioning has"),
    (RetypeColumn(path=path("id"), type='{"type":"array"}'), "the type can't be read: at the top: 'elementType'"),
    (RecommentColumn(path=path("s.y"), comment="c"), "there is no column s.y"),
    (MoveColumn(path=path("id"), position=ColumnPosition(after="id")), "there is no column id; there is s, l"),
    (MoveColumn(path=path("m.value"), position=ColumnPosition()), "m is no struct"),
    (ChangeNullability(path=path("y"), nullable=True), "there is no column y"),
    (ChangeDefault(path=path("y"), default="1"), "there is no column y"),
    (AddPartitionField(transform=ID), "partition field identity(id) is there already"),
    (AddPartitionField(transform=Transform(columns=(("y",),))), "there is no column y"),
    (DropPartitionField(transform=Transform(name="days", columns=(("id",),))), "there is no partition field days(id)"),
    (DropPartitionField(transform=Transform(field_name="shard")), "there is no partition field shard"),
    (
        DropPartitionField(transform=Transform(name="bucket", columns=(("s", "a"),), arguments=("8",))),
        "there is no partition field bucket(8, s.a); there is identity(id), bucket(4, s.a)",
    ),
    (
        ReplacePartitionField(transform=ID, new_transform=Transform(name="bucket", columns=(("y",),))),
        "there is no column y",
    ),
    (SetOrdering(ordering=(SortField(by=Transform(columns=(("y",),))),)), "there is no column y"),
    (SetClustering(columns=(("y",),)), "there is no column y"),
    (SetPrimaryKey(columns=(("s", "y"),)), "there is no column s.y"),
    (AddConstraint(constraint=key("PK", "id")), "constraint PK is there already; there is pk"),
    (AddConstraint(constraint=key("pk2", "x")), "pk2 would be a second primary key"),
    (AddConstraint(constraint=key("pk2", "y")), "there is no column y"),
    (DropConstraint(name="other"), "there is no constraint other; there is pk"),
]


@pytest.mark.parametrize(("change", "message"), IMPOSSIBLE, ids=[message for _, message in IMPOSSIBLE])
def test_an_impossible_change_is_reported_with_its_place(change: TableChange, message: str) -> None:
    with pytest.raises(ChangeError) as error:
        apply([SetProperty(key="k", value="v"), change], BEFORE)
    assert isinstance(error.value, TerminalError)
    assert error.value.index == 1
    assert error.value.change == change
    assert str(error.value).startswith(f"change 1 ({change.change}): ")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"ordering": (SortField(by=ID),)}, "the ordering has id"),
        ({"clustering": (("ID",),)}, "the clustering has ID"),
        ({"primary_key": (("id",),)}, "the primary key has id"),
        ({"watermarks": (Watermark(column=("id",), delay="1 s"),)}, "a watermark has id"),
        (
            {"constraints": (Constraint(name="c", kind=ConstraintKind.CHECK, columns=(("id",),)),)},
            "constraint c has id",
        ),
    ],
)
def test_nothing_is_dropped_that_something_refers_to(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ChangeError, match=f"id can't be dropped: {message}"):
        apply([DropColumn(path=("id",), if_exists=True)], table("id int, x int", **more))


def test_a_name_that_may_be_two_columns() -> None:
    with pytest.raises(ChangeError, match="AB may be any of ab, aB"):
        apply([DropColumn(path=("AB",))], table("ab int, aB int"))


def test_case_matters_where_spark_was_reported_so() -> None:
    with pytest.raises(ChangeError, match="there is no column ID"):
        apply([DropColumn(path=("ID",))], table("id int"), case_sensitive=True)


def test_many_columns_are_reported_in_short() -> None:
    with pytest.raises(ChangeError, match=r"c19 and 1980 more$"):
        apply([DropColumn(path=("y",))], table(", ".join(f"c{n} int" for n in range(2_000))))


@pytest.mark.parametrize(
    "column",
    [
        Column(name="a", type="struct<b:int>"),
        Column(name="a", type='{"type":"struct"}'),
        Column(name="a", type='"string"', metadata='{"__CHAR_VARCHAR_TYPE_STRING"'),
    ],
)
def test_a_description_that_cannot_be_read_is_reported(column: Column) -> None:
    retype = RetypeColumn(path=("a",), type=INT) if column.metadata else AddColumn(path=("a", "c"), type=INT)
    with pytest.raises(ChangeError, match=r"change 0 .*(can't be read|not JSON)"):
        apply([retype], Table(columns=(column,)))


def test_types_do_not_nest_beyond_the_limit() -> None:
    def structs(levels: int) -> str:
        return "struct<a:" * levels + "int" + ">" * levels

    deep = table(f"a {structs(60)}, b int")
    within = AddColumn(path=("a",) * 60 + ("b",), type=to_json(type_of(structs(MAX_NESTING - 60))))
    beyond = AddColumn(path=("a",) * 60 + ("b",), type=to_json(type_of(structs(MAX_NESTING - 59))))
    assert apply([within], deep).columns[0].type
    with pytest.raises(ChangeError, match=f"more than {MAX_NESTING} types in each other in a"):
        apply([beyond], deep)
    with pytest.raises(ChangeError, match=r"there is nothing$"):
        apply([ChangeNullability(path=("a",) * 100_000, nullable=True)], deep)
