"""Fields of Spark's schemas as columns, and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headwater.events.tables import Column
from headwater.events.types import (
    TypeTextError,
    columns_from_schema_json,
    from_field,
    schema_json,
    to_json,
    with_type,
)
from tests.kit.columns.ddl import type_of

STRUCT = {"type": "struct", "fields": [{"name": "b c", "type": "string", "nullable": False, "metadata": {}}]}
STRUCT_OF_CHAR = {"type": "struct", "fields": [{"name": "b c", "type": "char(3)", "nullable": False, "metadata": {}}]}


def field(type_: Any, metadata: dict[str, Any] | None = None) -> str:
    return json.dumps({"name": "a", "type": type_, "nullable": True, "metadata": metadata or {}})


@pytest.mark.parametrize(
    ("type_", "metadata", "column"),
    [
        ("long", {}, Column(name="a", type='"long"')),
        ("long", {"comment": "é"}, Column(name="a", type='"long"', comment="é")),
        ("long", {"comment": ""}, Column(name="a", type='"long"', comment="")),
        ("long", {"comment": 5}, Column(name="a", type='"long"', metadata='{"comment":5}')),
        (
            "date",
            {"CURRENT_DEFAULT": "current_date()", "EXISTS_DEFAULT": "DATE '2026-01-01'", "x": [1]},
            Column(
                name="a",
                type='"date"',
                default="current_date()",
                metadata='{"EXISTS_DEFAULT":"DATE \'2026-01-01\'","x":[1]}',
            ),
        ),
        (
            "date",
            {"GENERATION_EXPRESSION": "CAST(t AS DATE)"},
            Column(name="a", type='"date"', generated="CAST(t AS DATE)"),
        ),
        ("string", {"__COLLATIONS": {"a": "icu.UNICODE_CI"}}, Column(name="a", type='"string collate UNICODE_CI"')),
        (
            "string",
            {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"},
            Column(name="a", type='"char(3)"', metadata='{"__CHAR_VARCHAR_TYPE_STRING":"char(3)"}'),
        ),
        (
            STRUCT,
            {"__CHAR_VARCHAR_TYPE_STRING": "struct<b c:char(3)>"},
            Column(
                name="a",
                type=json.dumps(STRUCT_OF_CHAR, separators=(",", ":")),
                metadata='{"__CHAR_VARCHAR_TYPE_STRING":"struct<b c:char(3)>"}',
            ),
        ),
        (
            "string",
            {"__CHAR_VARCHAR_TYPE_STRING": "array<char(3)>"},
            Column(name="a", type='"string"', metadata='{"__CHAR_VARCHAR_TYPE_STRING":"array<char(3)>"}'),
        ),
        ("char(3)", {}, Column(name="a", type='"char(3)"')),
        (
            "char(3)",
            {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"},
            Column(name="a", type='"char(3)"', metadata='{"__CHAR_VARCHAR_TYPE_STRING":"char(5)"}'),
        ),
    ],
)
def test_a_field_is_a_column_and_comes_back(type_: Any, metadata: dict[str, Any], column: Column) -> None:
    text = field(type_, metadata)
    assert from_field(text) == column
    schema = f'{{"type":"struct","fields":[{text}]}}'
    assert columns_from_schema_json(schema) == (column,)
    assert json.loads(schema_json((column,))) == json.loads(schema)


def test_an_empty_schema_is_no_columns() -> None:
    assert columns_from_schema_json('{"type":"struct","fields":[]}') == ()
    assert schema_json(()) == '{"type":"struct","fields":[]}'


def test_a_schema_is_a_struct() -> None:
    with pytest.raises(TypeTextError, match="a schema is a struct, not 'array<int>'"):
        columns_from_schema_json('{"type":"array","elementType":"integer","containsNull":true}')


def test_a_field_says_nothing_that_would_be_lost() -> None:
    with pytest.raises(TypeTextError, match="a field has no 'id'"):
        from_field('{"name":"a","type":"long","id":1}')


@pytest.mark.parametrize(
    ("new", "metadata"),
    [
        ("varchar(9)", '{"x":1,"__CHAR_VARCHAR_TYPE_STRING":"varchar(9)"}'),
        ("array<char(2)>", '{"x":1,"__CHAR_VARCHAR_TYPE_STRING":"array<char(2)>"}'),
        ("string", '{"x":1}'),
    ],
)
def test_a_new_type_brings_its_lengths(new: str, metadata: str) -> None:
    column = from_field(field("string", {"__CHAR_VARCHAR_TYPE_STRING": "char(3)", "x": 1}))
    changed = with_type(column, type_of(new))
    assert changed.type == to_json(type_of(new))
    assert changed.metadata == metadata
    assert columns_from_schema_json(schema_json((changed,))) == (changed,)


@pytest.mark.slow
def test_a_wide_schema_is_read_and_written() -> None:
    fields = [{"name": f"column {n}", "type": STRUCT, "nullable": True, "metadata": {"n": n}} for n in range(2_000)]
    schema = {"type": "struct", "fields": fields}
    assert json.loads(schema_json(columns_from_schema_json(json.dumps(schema)))) == schema
