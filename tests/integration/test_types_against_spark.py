"""Spark's own reading and writing of types is what headwater's is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings

from headwater.events.types import (
    columns_from_schema_json,
    parse_json,
    schema_json,
    simple_string,
    to_json,
)
from tests.kit.columns.spark_types import SPARK_3_SCHEMAS
from tests.kit.spark.jvm import spark_classes

pytestmark = pytest.mark.spark
against_spark = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)

SQL = [
    *("boolean", "byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint", "float", "real", "double"),
    *("date", "timestamp", "timestamp_ntz", "timestamp_ltz", "string", "binary", "void", "interval"),
    *("interval day", "interval hour to second", "INTERVAL DAY TO SECOND", "interval year to month", "interval month"),
    *("decimal", "dec(5)", "numeric(38, 18)", "char(3)", "character(3)", "varchar(65535)"),
    *("array<int>", "map<string, array<date>>", "struct<>", "struct<a:int,b:decimal(10,2)>", "STRUCT<a: INT, A: INT>"),
    "struct<a: int not null comment 'it\\'s \\n \\u00e9 \\\\', `b.c ``d` string>",
    'a INT NOT NULL COMMENT "x", b ARRAY<STRUCT<c: DATE>>',
]


class Spark(NamedTuple):
    types: Any
    """Spark's DataType."""


@pytest.fixture(scope="module")
def spark(java_home: Path) -> Iterator[Spark]:
    with spark_classes(java_home) as gateway:
        yield Spark(gateway.jvm.org.apache.spark.sql.types.DataType)


@pytest.mark.parametrize("sql", SQL)
def test_a_type_that_spark_read_from_sql_is_read_and_shown_as_spark_does(spark: Spark, sql: str) -> None:
    theirs = spark.types.fromDDL(sql)
    ours = parse_json(theirs.json())
    assert to_json(ours) == theirs.json()
    assert simple_string(ours) == theirs.catalogString()


@against_spark
@given(schema=SPARK_3_SCHEMAS)
def test_a_schema_that_spark_wrote_comes_back(spark: Spark, schema: Any) -> None:
    theirs = spark.types.fromJson(json.dumps(spark_metadata(schema)))
    ours = schema_json(columns_from_schema_json(theirs.json()))
    assert spark.types.fromJson(ours).equals(theirs)
    assert simple_string(parse_json(theirs.json())) == theirs.catalogString()


def spark_metadata(value: Any) -> Any:
    """Spark's metadata holds no nulls, numbers up to a long, and lists of one kind: keep what it can hold."""
    if isinstance(value, dict):
        kept = {key: spark_metadata(item) for key, item in value.items()}
        if "metadata" in kept:
            kept["metadata"] = {key: item for key, item in value["metadata"].items() if isinstance(item, (str, bool))}
        return kept
    return [spark_metadata(item) for item in value] if isinstance(value, list) else value
