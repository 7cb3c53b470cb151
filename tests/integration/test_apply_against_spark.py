"""`apply` makes of a list of changes what Spark makes of it for its own catalogs (CatalogV2Util.applySchemaChanges)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from headwater.events.apply import ChangeError, apply
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
from headwater.events.tables import Table
from headwater.events.types import columns_from_schema_json, schema_json, to_json
from tests.kit.columns.ddl import type_of
from tests.kit.columns.table_changes import histories
from tests.kit.spark.jvm import JVM_ERROR, spark_classes

pytestmark = pytest.mark.spark

SCHEMA = (
    "id BIGINT NOT NULL COMMENT 'the id', name STRING, s STRUCT<a: INT NOT NULL COMMENT 'in s', b: STRING>, "
    "l ARRAY<STRUCT<x: INT, y: STRUCT<z: DATE>>>, m MAP<STRUCT<k: INT>, STRUCT<v: INT, w: STRING>>, n ARRAY<INT>, "
    "o MAP<STRING, INT>"
)


class Spark:
    """Spark's side: the same changes as Spark's objects."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self._catalog = gateway.jvm.org.apache.spark.sql.connector.catalog
        self._types = gateway.jvm.org.apache.spark.sql.types.DataType

    def schema_after(self, changes: list[TableChange], schema: str) -> Any:
        jvm = self._gateway.jvm
        theirs = jvm.java.util.ArrayList()
        for change in changes:
            theirs.add(self._change(change))
        after = self._catalog.CatalogV2Util.applySchemaChanges(
            self._types.fromJson(schema),
            jvm.org.apache.spark.api.python.PythonUtils.toSeq(theirs),
            jvm.scala.Option.apply("parquet"),
            "ALTER TABLE",
        )
        return json.loads(after.json())

    def _change(self, change: TableChange) -> Any:
        make, path = self._catalog.TableChange, self._path(getattr(change, "path", ()))
        makers: dict[type, Callable[[Any], Any]] = {
            AddColumn: lambda it: make.addColumn(
                path,
                self._types.fromJson(it.type),
                it.nullable,
                it.comment,
                self._position(it.position),
                self._default(it.default),
            ),
            DropColumn: lambda it: make.deleteColumn(path, it.if_exists),
            RenameColumn: lambda it: make.renameColumn(path, it.new_name),
            RetypeColumn: lambda it: make.updateColumnType(path, self._types.fromJson(it.type)),
            RecommentColumn: lambda it: make.updateColumnComment(path, it.comment),
            MoveColumn: lambda it: make.updateColumnPosition(path, self._position(it.position)),
            ChangeNullability: lambda it: make.updateColumnNullability(path, it.nullable),
            ChangeDefault: lambda it: make.updateColumnDefaultValue(path, it.default or ""),
        }
        return makers[type(change)](change)

    def _path(self, path: tuple[str, ...]) -> Any:
        names = self._gateway.new_array(self._gateway.jvm.java.lang.String, len(path))
        for index, name in enumerate(path):
            names[index] = name
        return names

    def _position(self, position: ColumnPosition | None) -> Any:
        if position is None:
            return None
        places = getattr(self._catalog, "TableChange$ColumnPosition")
        return places.first() if position.after is None else places.after(position.after)

    def _default(self, sql: str | None) -> Any:
        if sql is None:
            return None
        integer = self._types.fromJson('"integer"')
        value = self._gateway.jvm.org.apache.spark.sql.connector.expressions.LiteralValue(int(sql), integer)
        return self._catalog.ColumnDefaultValue(sql, value)


@pytest.fixture(scope="module")
def spark(java_home: Path) -> Iterator[Spark]:
    with spark_classes(java_home) as gateway:
        yield Spark(gateway)


def add(path: str, type_: str = "int", **more: Any) -> AddColumn:
    return AddColumn(path=tuple(path.split(".")), type=to_json(type_of(type_)), **more)


def path(text: str) -> tuple[str, ...]:
    return tuple(text.split("."))


FIRST = ColumnPosition()

HISTORIES: list[list[TableChange]] = [
    [],
    [add("new")],
    [add("new", "STRUCT<a: INT NOT NULL>", nullable=False, comment="it's new")],
    [add("new", position=FIRST), add("newer", position=ColumnPosition(after="new"))],
    [add("new", default="7")],
    [add("s.new", comment="x", default="7"), add("s.newer", "array<int>", comment="y")],
    [add("s.new", position=FIRST), add("s.newer", position=ColumnPosition(after="a"))],
    [add("l.element.new", nullable=False)],
    [add("l.element.y.new", position=FIRST)],
    [add("m.key.new"), add("m.value.new", position=ColumnPosition(after="v"))],
    [DropColumn(path=path("name")), DropColumn(path=path("nothing"), if_exists=True)],
    [DropColumn(path=path("s.a")), DropColumn(path=path("s.b"))],
    [DropColumn(path=path("l.element.y.z")), DropColumn(path=path("m.key.k"))],
    [DropColumn(path=path("s.nothing"), if_exists=True), DropColumn(path=path("l.element.x"), if_exists=True)],
    [RenameColumn(path=path("id"), new_name="key")],
    [RenameColumn(path=path("s.a"), new_name="b.c"), RenameColumn(path=path("l.element.y.z"), new_name="day")],
    [RenameColumn(path=path("m.value.w"), new_name="ww"), RenameColumn(path=path("m.key.k"), new_name="kk")],
    [RetypeColumn(path=path("id"), type='"string"'), RetypeColumn(path=path("s.a"), type='"long"')],
    [RetypeColumn(path=path("n.element"), type='"long"'), RetypeColumn(path=path("o.value"), type='"long"')],
    [RetypeColumn(path=path("o.key"), type='"binary"'), RetypeColumn(path=path("l.element.x"), type='"long"')],
    [RecommentColumn(path=path("id"), comment="another"), RecommentColumn(path=path("s.a"), comment="deeper")],
    [RecommentColumn(path=path("name"), comment=""), RecommentColumn(path=path("l.element.y"), comment="y")],
    [RecommentColumn(path=path("n.element"), comment="nowhere to be kept")],
    [ChangeNullability(path=path("id"), nullable=True), ChangeNullability(path=path("s.b"), nullable=False)],
    [
        ChangeNullability(path=path("n.element"), nullable=False),
        ChangeNullability(path=path("o.value"), nullable=False),
    ],
    [ChangeNullability(path=path("o.key"), nullable=True), ChangeNullability(path=path("m.value"), nullable=False)],
    [MoveColumn(path=path("name"), position=FIRST), MoveColumn(path=path("id"), position=ColumnPosition(after="s"))],
    [
        MoveColumn(path=path("s.b"), position=FIRST),
        MoveColumn(path=path("m.value.v"), position=ColumnPosition(after="w")),
    ],
    [MoveColumn(path=path("l.element.y"), position=FIRST)],
    [ChangeDefault(path=path("id"), default="1"), ChangeDefault(path=path("s.a"), default="2")],
    [ChangeDefault(path=path("id"), default="1"), ChangeDefault(path=path("id"), default=None)],
    [add("t", "struct<a:int>"), add("t.b"), RenameColumn(path=path("t.b"), new_name="c"), DropColumn(path=path("t.a"))],
    [RenameColumn(path=path("name"), new_name="tmp"), RenameColumn(path=path("id"), new_name="name"), add("id")],
]

IMPOSSIBLE: list[TableChange] = [
    DropColumn(path=path("nothing")),
    DropColumn(path=path("s.nothing")),
    DropColumn(path=path("n.element")),
    DropColumn(path=path("o.key")),
    DropColumn(path=path("o.value")),
    RenameColumn(path=path("nothing"), new_name="x"),
    RetypeColumn(path=path("name.x"), type='"long"'),
    RetypeColumn(path=path("n.x"), type='"long"'),
    RecommentColumn(path=path("l.x"), comment="elements first"),
    ChangeNullability(path=path("m.x"), nullable=True),
    ChangeDefault(path=path("nothing"), default="1"),
    MoveColumn(path=path("nothing"), position=FIRST),
    MoveColumn(path=path("id"), position=ColumnPosition(after="nothing")),
    MoveColumn(path=path("id"), position=ColumnPosition(after="id")),
    add("name.x"),
    add("n.element.x"),
    add("nothing.x"),
    add("x", position=ColumnPosition(after="nothing")),
]


@pytest.mark.parametrize(
    "changes", HISTORIES, ids=lambda changes: "+".join(change.change for change in changes) or "none"
)
def test_spark_makes_the_same_of_it(spark: Spark, changes: list[TableChange]) -> None:
    schema = to_json(type_of(SCHEMA))
    ours = apply(changes, Table(columns=columns_from_schema_json(schema)))
    assert json.loads(schema_json(ours.columns)) == without_exists_default(spark.schema_after(changes, schema))


@pytest.mark.parametrize("change", IMPOSSIBLE, ids=lambda change: f"{change.change} {'.'.join(change.path)}")
def test_what_spark_refuses_is_refused(spark: Spark, change: TableChange) -> None:
    schema = to_json(type_of(SCHEMA))
    with pytest.raises(ChangeError):
        apply([change], Table(columns=columns_from_schema_json(schema)))
    with pytest.raises(JVM_ERROR, match=r"IllegalArgumentException|SparkException|AnalysisException"):
        spark.schema_after([change], schema)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(history=histories(as_spark=True))
def test_spark_makes_the_same_of_any_history(spark: Spark, history: tuple[Table, list[TableChange]]) -> None:
    table, changes = history
    ours = apply(changes, table, case_sensitive=True)
    theirs = spark.schema_after(changes, schema_json(table.columns))
    assert json.loads(schema_json(ours.columns)) == without_exists_default(theirs)


def without_exists_default(value: Any) -> Any:
    """Spark evaluates the default of a new column; the change doesn't tell to what."""
    if isinstance(value, dict):
        return {key: without_exists_default(item) for key, item in value.items() if key != "EXISTS_DEFAULT"}
    return [without_exists_default(item) for item in value] if isinstance(value, list) else value
