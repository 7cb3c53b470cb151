"""Spark's data types: as values, as Spark's JSON, as SQL, and in the columns of tables.

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
from headwater.events.types.ddl import simple_string, to_ddl
from headwater.events.types.ddl_parser import parse_ddl
from headwater.events.types.errors import MAX_NESTING, MAX_TEXT, TypeTextError
from headwater.events.types.spark_json import parse_json, to_json
from headwater.events.types.tree import (
    Array,
    Char,
    Collated,
    DataType,
    Decimal,
    Field,
    Map,
    Opaque,
    Simple,
    Struct,
    Time,
    UserDefined,
    Varchar,
)

__all__ = [
    "MAX_NESTING",
    "MAX_TEXT",
    "Array",
    "Char",
    "Collated",
    "DataType",
    "Decimal",
    "Field",
    "Map",
    "Opaque",
    "Simple",
    "Struct",
    "Time",
    "TypeTextError",
    "UserDefined",
    "Varchar",
    "column_of",
    "columns_from_schema_json",
    "field_of",
    "from_field",
    "parse_ddl",
    "parse_json",
    "schema_json",
    "simple_string",
    "to_ddl",
    "to_json",
    "with_type",
]
