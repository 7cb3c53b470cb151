"""Changes of columns, by hand: what Spark's own helper leaves open, and what refers to a column."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headwater.events.apply import apply
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
from headwater.events.types import columns_from_schema_json, from_field, simple_string, to_json
from tests.kit.columns.ddl import type_of

FIRST = ColumnPosition()


def table(ddl: str, **more: Any) -> Table:
    return Table(columns=columns_from_schema_json(to_json(type_of(ddl))), **more)


def path(text: str) -> tuple[str, ...]:
    return tuple(text.split("."))


def add(where: str, type_: str = "int", **more: Any) -> AddColumn:
    return AddColumn(path=path(where), type=to_json(type_of(type_)), **more)


def retype(where: str, type_: str) -> RetypeColumn:
    return RetypeColumn(path=path(where), type=to_json(type_of(type_)))


def after(name: str) -> ColumnPosition:
    return ColumnPosition(after=name)


CASES: list[tuple[str, list[TableChange], str]] = [
    ("a int", [add("b")], "a int, b int"),
    ("a int", [add("b", position=FIRST)], "b int, a int"),
    ("a int, c int", [add("b", position=after("A"))], "a int, b int, c int"),
    ("a int", [add("b", "string", nullable=False, comment="x")], "a int, b string NOT NULL COMMENT 'x'"),
    ("a struct<>", [add("a.b")], "a struct<b: int>"),
    ("a struct<b: int>", [add("A.c", position=FIRST)], "a struct<c: int, b: int>"),
    ("a struct<b: int>", [add("a.c", position=after("B"), comment="x")], "a struct<b: int, c: int comment 'x'>"),
    ("a array<struct<b: int>>", [add("a.element.c")], "a array<struct<b: int, c: int>>"),
    ("a map<struct<b: int>, struct<c: int>>", [add("a.key.d")], "a map<struct<b: int, d: int>, struct<c: int>>"),
    ("a map<int, struct<c: int>>", [add("a.value.d")], "a map<int, struct<c: int, d: int>>"),
    ("a array<array<struct<b: int>>>", [add("a.element.element.c")], "a array<array<struct<b: int, c: int>>>"),
    (
        "a map<int, map<int, array<int>>>",
        [retype("a.value.value.element", "long")],
        "a map<int, map<int, array<long>>>",
    ),
    ("a int, b int", [DropColumn(path=path("B"))], "a int"),
    ("a int", [DropColumn(path=path("a"))], ""),
    ("a int", [DropColumn(path=path("b"), if_exists=True)], "a int"),
    ("a int", [DropColumn(path=path("a.b.c"), if_exists=True)], "a int"),
    ("a struct<b: int, c: int>", [DropColumn(path=path("a.b"))], "a struct<c: int>"),
    ("a array<struct<b: int>>", [DropColumn(path=path("a.element.b"))], "a array<struct<>>"),
    ("a int, b int, c int", [RenameColumn(path=path("B"), new_name="d")], "a int, d int, c int"),
    ("a int", [RenameColumn(path=path("a"), new_name="A")], "A int"),
    ("a struct<b: int not null>", [RenameColumn(path=path("a.b"), new_name="c")], "a struct<c: int not null>"),
    ("a int not null comment 'x'", [retype("a", "bigint")], "a bigint not null comment 'x'"),
    ("a struct<b: int not null comment 'x'>", [retype("a.b", "long")], "a struct<b: long not null comment 'x'>"),
    ("a array<int>", [retype("a.element", "long")], "a array<long>"),
    ("a map<int, int>", [retype("a.key", "long"), retype("a.value", "date")], "a map<long, date>"),
    ("a int comment 'x'", [RecommentColumn(path=path("a"), comment="y")], "a int comment 'y'"),
    ("a int comment 'x'", [RecommentColumn(path=path("a"))], "a int"),
    ("a struct<b: int comment 'x'>", [RecommentColumn(path=path("a.b"))], "a struct<b: int>"),
    ("a array<int>", [RecommentColumn(path=path("a.element"), comment="y")], "a array<int>"),
    ("a int, b int, c int", [MoveColumn(path=path("c"), position=FIRST)], "c int, a int, b int"),
    ("a int, b int, c int", [MoveColumn(path=path("a"), position=after("c"))], "b int, c int, a int"),
    ("a struct<b: int, c: int>", [MoveColumn(path=path("a.c"), position=FIRST)], "a struct<c: int, b: int>"),
    ("a int", [ChangeNullability(path=path("a"), nullable=False)], "a int not null"),
    ("a struct<b: int not null>", [ChangeNullability(path=path("a.b"), nullable=True)], "a struct<b: int>"),
    ("a map<int, int>", [ChangeNullability(path=path("a.key"), nullable=True)], "a map<int, int>"),
    ("`\u017f` int", [RenameColumn(path=path("S"), new_name="s, to Java")], "`s, to Java` int"),
    ("ß int", [add("SS")], "ß int, SS int"),
    ("É int", [RenameColumn(path=path("é"), new_name="e")], "e int"),
    ("a int, A int", [DropColumn(path=path("A"))], "a int"),
    ("`a.b` int, a struct<b: int>", [DropColumn(path=("a.b",))], "a struct<b: int>"),
    (
        "element struct<key: int>",
        [RenameColumn(path=path("element.key"), new_name="value")],
        "element struct<value: int>",
    ),
]


@pytest.mark.parametrize(("before", "changes", "expected"), CASES, ids=[f"{case[0]} > {case[2]}" for case in CASES])
def test_columns_are_changed(before: str, changes: list[TableChange], expected: str) -> None:
    assert apply(changes, table(before)) == (table(expected) if expected else Table())


def test_whether_elements_and_values_may_be_null() -> None:
    changes: list[TableChange] = [
        ChangeNullability(path=path("a.element"), nullable=False),
        ChangeNullability(path=path("m.value"), nullable=False),
        ChangeNullability(path=path("d.element.element"), nullable=False),
    ]
    after_ = apply(changes, table("a array<int>, m map<int, int>, d array<array<int>>"))
    assert [json.loads(column.type) for column in after_.columns] == [
        {"type": "array", "elementType": "integer", "containsNull": False},
        {"type": "map", "keyType": "integer", "valueType": "integer", "valueContainsNull": False},
        {
            "type": "array",
            "elementType": {"type": "array", "elementType": "integer", "containsNull": False},
            "containsNull": True,
        },
    ]


def test_defaults() -> None:
    changes: list[TableChange] = [
        ChangeDefault(path=path("a"), default="1"),
        ChangeDefault(path=path("s.b"), default="2"),
        add("c", default="3"),
        add("s.d", default="4", comment="x"),
    ]
    changed = apply(changes, table("a int, s struct<b: int>"))
    assert [column.default for column in changed.columns] == ["1", None, "3"]
    assert [field["metadata"] for field in json.loads(changed.columns[1].type)["fields"]] == [
        {"CURRENT_DEFAULT": "2"},
        {"comment": "x", "CURRENT_DEFAULT": "4"},
    ]
    without: list[TableChange] = [
        ChangeDefault(path=path("a")),
        ChangeDefault(path=path("s.b"), default=""),
        ChangeDefault(path=path("c"), default=""),
        DropColumn(path=path("s.d")),
    ]
    assert apply(without, changed) == table("a int, s struct<b: int>, c int")


def test_what_a_default_was_evaluated_to_stays_with_the_column() -> None:
    column = from_field(
        '{"name":"a","type":"date","nullable":true,'
        '"metadata":{"CURRENT_DEFAULT":"now()","EXISTS_DEFAULT":"DATE \'2026-01-01\'"}}'
    )
    changed = apply([ChangeDefault(path=path("a"))], Table(columns=(column,)))
    assert changed.columns[0].default is None
    assert changed.columns[0].metadata == '{"EXISTS_DEFAULT":"DATE \'2026-01-01\'"}'


def test_a_renamed_column_keeps_all_that_is_reported_of_it() -> None:
    column = Column(
        name="a", type='"date"', nullable=False, comment="c", default="d", generated="g", metadata='{"id":7}'
    )
    changed = apply([RenameColumn(path=path("a"), new_name="b")], Table(columns=(column,)))
    assert changed.columns == (column.model_copy(update={"name": "b"}),)


def test_collations_follow_a_nested_field_to_its_new_name() -> None:
    changed = apply(
        [RenameColumn(path=path("s.b"), new_name="c")], table("s struct<b: array<string collate UNICODE_CI>>")
    )
    assert changed == table("s struct<c: array<string collate UNICODE_CI>>")
    assert '{"__COLLATIONS":{"c.element":"icu.UNICODE_CI"}}' in changed.columns[0].type


def test_lengths_of_strings_follow_a_change_inside() -> None:
    metadata = '{"__CHAR_VARCHAR_TYPE_STRING":"struct<a:char(3)>"}'
    inner = '{"name":"a","type":"string","nullable":true,"metadata":{}}'
    column = from_field(
        f'{{"name":"s","type":{{"type":"struct","fields":[{inner}]}},"nullable":true,"metadata":{metadata}}}'
    )
    changed = apply([add("s.b", "varchar(9)")], Table(columns=(column,))).columns[0]
    assert simple_string(type_of("struct<a:char(3),b:varchar(9)>")) in str(changed.metadata)
    dropped = apply([DropColumn(path=path("s.a")), retype("s.b", "int")], Table(columns=(changed,))).columns[0]
    assert dropped.metadata is None


REFERRING = {
    "partitioning": (Transform(columns=(("D",),)), Transform(name="bucket", columns=(("s", "a"),), arguments=("16",))),
    "ordering": (SortField(by=Transform(columns=(("s", "a"),)), descending=True),),
    "clustering": (("s", "a"), ("id",)),
    "primary_key": (("id",), ("s", "a")),
    "watermarks": (Watermark(column=("s", "a"), delay="1 minute"),),
    "constraints": (
        Constraint(name="positive", kind=ConstraintKind.CHECK, columns=(("s", "a"),), expression="s.a > 0"),
        Constraint(name="known", kind=ConstraintKind.NOT_NULL, columns=(("id",),)),
    ),
}


def test_what_refers_to_a_column_follows_it() -> None:
    before = table("id int, d date, s struct<a: int>", **REFERRING)
    changed = apply([RenameColumn(path=path("S.A"), new_name="b"), RenameColumn(path=path("s"), new_name="t")], before)
    assert changed.partitioning == (
        Transform(columns=(("D",),)),
        Transform(name="bucket", columns=(("t", "b"),), arguments=("16",)),
    )
    assert changed.ordering[0].by.columns == (("t", "b"),)
    assert changed.ordering[0].descending
    assert changed.clustering == (("t", "b"), ("id",))
    assert changed.primary_key == (("id",), ("t", "b"))
    assert changed.watermarks[0].column == ("t", "b")
    assert changed.constraints[0].columns == (("t", "b"),)
    assert changed.constraints[0].expression == "s.a > 0"
    assert apply([RenameColumn(path=path("d"), new_name="day")], before).partition_keys[0] == ("day",)


def test_not_null_goes_with_its_column() -> None:
    constraints = REFERRING["constraints"]
    changed = apply([DropColumn(path=path("id"))], table("id int, s struct<a: int>", constraints=constraints))
    assert changed == table("s struct<a: int>", constraints=constraints[:1])


def test_case_matters_where_spark_was_reported_so() -> None:
    changed = apply([add("A"), DropColumn(path=path("a"))], table("a int"), case_sensitive=True)
    assert changed == table("A int")


@pytest.mark.slow
def test_a_table_as_wide_as_they_come() -> None:
    wide = table(", ".join(f"c{n} struct<a: int>" for n in range(2_000)))
    changed = apply([RenameColumn(path=(f"c{n}", "a"), new_name="b") for n in range(0, 2_000, 100)], wide)
    assert sum(one is not other for one, other in zip(wide.columns, changed.columns, strict=True)) == 20
