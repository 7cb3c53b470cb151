"""Spark's data types: as values, as Spark's JSON, as short text, and in the columns of tables.

`Column.type` is Spark's type JSON in the compact form of `to_json`. Whatever Spark wrote comes back: what isn't known
here is kept whole. At most MAX_NESTING arrays, maps and structs may stand in each other, and a text may have MAX_TEXT
characters; what is beyond that, or isn't a type, raises TypeTextError and nothing else.
"""

from __future__ import annotations

from headwater.events.types.columns import (
    column_of,
    columns_from_schema_json,
    field_of,
    from_field,
    schema_json,
    with_type,
)
from headwater.events.types.json_text import MAX_NESTING, MAX_TEXT, TypeTextError
from headwater.events.types.short_text import simple_string
from headwater.events.types.spark_json import parse_json, to_json
from headwater.events.types.tree import (
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
    UnknownType,
    UserDefinedType,
    VarcharType,
)

__all__ = [
    "MAX_NESTING",
    "MAX_TEXT",
    "ArrayType",
    "CharType",
    "CollatedStringType",
    "DataType",
    "DecimalType",
    "MapType",
    "SimpleType",
    "StructField",
    "StructType",
    "TimeType",
    "TypeTextError",
    "UnknownType",
    "UserDefinedType",
    "VarcharType",
    "column_of",
    "columns_from_schema_json",
    "field_of",
    "from_field",
    "parse_json",
    "schema_json",
    "simple_string",
    "to_json",
    "with_type",
]
