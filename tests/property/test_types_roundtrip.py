"""What Spark wrote comes back; what isn't a type gives one error and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.events.types import (
    TypeTextError,
    column_of,
    columns_from_schema_json,
    field_of,
    parse_json,
    schema_json,
    to_json,
)
from headwater.events.types.spark_json import field_to_json, parse_field
from tests.kit.columns.spark_types import SCHEMAS, SPARK_3_SCHEMAS, TYPES, data_type


@given(TYPES)
def test_a_type_is_written_as_it_was_read(value: Any) -> None:
    assert json.loads(to_json(data_type(value))) == value


@given(TYPES)
def test_writing_is_canonical(value: Any) -> None:
    once = to_json(data_type(value))
    assert to_json(parse_json(once)) == once
    assert to_json(parse_json(json.dumps(value, indent=2))) == once


@given(SCHEMAS)
def test_a_schema_comes_back_from_its_columns(schema: Any) -> None:
    columns = columns_from_schema_json(json.dumps(schema))
    assert [column.name for column in columns] == [field["name"] for field in schema["fields"]]
    assert json.loads(schema_json(columns)) == schema


@given(SCHEMAS)
def test_every_field_comes_back_from_its_column(schema: Any) -> None:
    for field in schema["fields"]:
        read = parse_field(json.dumps(field))
        assert json.loads(field_to_json(field_of(column_of(read)))) == field


@pytest.mark.spark
@given(SPARK_3_SCHEMAS)
def test_pyspark_reads_its_own_schema_out_of_ours(schema: Any) -> None:
    from pyspark.sql.types import StructType

    theirs = StructType.fromJson(schema)
    ours = schema_json(columns_from_schema_json(theirs.json()))
    assert StructType.fromJson(json.loads(ours)) == theirs
    assert json.loads(ours) == theirs.jsonValue()


@given(st.text())
def test_any_text_is_a_type_or_an_error(text: str) -> None:
    for read in (parse_json, parse_field, columns_from_schema_json):
        assert_read_or_refused(read, text)


@given(SCHEMAS, st.data())
def test_a_broken_schema_is_a_schema_or_an_error(schema: Any, data: st.DataObject) -> None:
    text = json.dumps(schema)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 20)))
    broken = text[:start] + data.draw(st.text(max_size=5) | st.just(text[end:start])) + text[end:]
    assert_read_or_refused(columns_from_schema_json, broken)


def assert_read_or_refused(read: Callable[[str], object], text: str) -> None:
    """Whatever else is raised fails the test; an error says what it is about."""
    answer: object = None
    try:
        answer = read(text)
    except TypeTextError as error:
        answer = str(error)
    assert answer not in {None, ""}
