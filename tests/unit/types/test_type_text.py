"""Types as Spark shows and stores them in short."""

from __future__ import annotations

import pytest

from headwater.events.types import (
    ArrayType,
    CharType,
    CollatedStringType,
    DataType,
    DecimalType,
    MapType,
    SimpleType,
    StructField,
    StructType,
    TimeType,
    TypeTextError,
    UnknownType,
    UserDefinedType,
    simple_string,
)

INT = SimpleType("integer")
VECTOR = UserDefinedType('{"type":"udt","sqlType":{"type":"array","elementType":"double","containsNull":false}}')


@pytest.mark.parametrize(
    ("type_", "short"),
    [
        (SimpleType("byte"), "tinyint"),
        (SimpleType("long"), "bigint"),
        (SimpleType("interval day to second"), "interval day to second"),
        (DecimalType(9, -2), "decimal(9,-2)"),
        (CharType(3), "char(3)"),
        (TimeType(6), "time(6)"),
        (ArrayType(INT, contains_null=False), "array<int>"),
        (MapType(SimpleType("string"), ArrayType(INT)), "map<string,array<int>>"),
        (StructType(), "struct<>"),
        (CollatedStringType("de_CI"), "string collate de_CI"),
        (StructType((StructField("a.b", INT, nullable=False),)), "struct<a.b:int>"),
        (StructType((StructField("7", INT),)), "struct<7:int>"),
        (VECTOR, "array<double>"),
        (UnknownType('"geometry(4326)"'), "geometry(4326)"),
    ],
)
def test_a_type_is_shown_as_spark_shows_it(type_: DataType, short: str) -> None:
    assert simple_string(type_) == short


@pytest.mark.parametrize("type_", [UnknownType('{"type":"tensor"}'), UserDefinedType('{"type":"udt","pyClass":"x"}')])
def test_what_sql_has_no_words_for_is_refused(type_: DataType) -> None:
    with pytest.raises(TypeTextError, match="has no form in SQL"):
        simple_string(type_)
