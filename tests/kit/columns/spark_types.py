"""Spark's types for hypothesis: as the JSON that Spark writes, made without headwater's own code."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from headwater.events.types import DataType, parse_json

NAMES = st.one_of(
    st.sampled_from(["a", "b", "A", "id", "a.b", "a b", "`", "select", "key", "value", "element", "naïve", "名"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
WORDS = st.sampled_from(["a", "b", "c", "id", "Name", "x_1", "9lives", "with space", "tick`tock", "dot.dot", "ß", "7"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)

ATOMS = st.one_of(
    st.sampled_from(
        ["string", "boolean", "byte", "short", "integer", "long", "float", "double", "binary", "date", "timestamp"]
    ),
    st.sampled_from(["timestamp_ntz", "void"]),
    st.sampled_from(["interval day", "interval day to second", "interval year to month", "interval minute to second"]),
    st.integers(0, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: f"decimal({p},{s})")),
    st.integers(1, 99).map("char({})".format),
    st.integers(1, 99).map("varchar({})".format),
)
"""What Spark 3.5 writes in JSON."""
LATER_ATOMS = st.one_of(
    ATOMS,
    st.sampled_from(["variant", "interval", "time(0)", "time(6)", "decimal(9,-2)"]),
    st.sampled_from(["geometry(4326)", "geography(OGC:CRS84, SPHERICAL)", "hyperlog", "decimal(99,1)"]),
)
UDTS = st.fixed_dictionaries(
    {
        "type": st.just("udt"),
        "class": st.just("org.apache.spark.ml.linalg.VectorUDT"),
        "pyClass": st.just("pyspark.ml.linalg.VectorUDT"),
        "sqlType": st.just({"type": "array", "elementType": "double", "containsNull": False}),
    }
)
METADATA = st.dictionaries(
    TEXTS,
    st.recursive(
        st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS, st.none()),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2),
        max_leaves=4,
    ),
    max_size=2,
)
SPARK_METADATA = st.fixed_dictionaries(
    {},
    optional={
        "comment": TEXTS,
        "CURRENT_DEFAULT": TEXTS,
        "EXISTS_DEFAULT": TEXTS,
        "GENERATION_EXPRESSION": TEXTS,
    },
)


@st.composite
def fields(draw: st.DrawFn, types: st.SearchStrategy[Any], names: st.SearchStrategy[str] = NAMES) -> dict[str, Any]:
    metadata = {**draw(METADATA), **draw(SPARK_METADATA)}
    return {"name": draw(names), "type": draw(types), "nullable": draw(st.booleans()), "metadata": metadata}


@st.composite
def collated_fields(draw: st.DrawFn) -> dict[str, Any]:
    """Spark 4: a string, or strings in arrays and maps, with collations in the metadata by path."""
    name = draw(NAMES)
    array = {"type": "array", "elementType": "string", "containsNull": True}
    by_key = {"type": "map", "keyType": "string", "valueType": array, "valueContainsNull": False}
    shapes: list[tuple[Any, list[str]]] = [
        ("string", [name]),
        (array, [f"{name}.element"]),
        (by_key, [f"{name}.key", f"{name}.value.element"]),
    ]
    type_, paths = draw(st.sampled_from(shapes))
    chosen = draw(st.sets(st.sampled_from(paths), min_size=1))
    collations = st.sampled_from(["icu.UNICODE_CI", "icu.de_CI_AI", "spark.UTF8_LCASE"])
    metadata: dict[str, Any] = {path: draw(collations) for path in sorted(chosen)}
    return {
        "name": name,
        "type": type_,
        "nullable": draw(st.booleans()),
        "metadata": {**draw(SPARK_METADATA), "__COLLATIONS": metadata},
    }


@st.composite
def limited_fields(draw: st.DrawFn) -> dict[str, Any]:
    """A column of char or varchar as it stands in the schema of a table: a string, its true type in the metadata."""
    limit = draw(st.sampled_from(["char(3)", "varchar(10)"]))
    inner = {"name": "a", "type": "string", "nullable": True, "metadata": {}}
    shapes: list[tuple[Any, str]] = [
        ("string", limit),
        ({"type": "array", "elementType": "string", "containsNull": True}, f"array<{limit}>"),
        ({"type": "struct", "fields": [inner, {**inner, "name": "b c"}]}, f"struct<a:string,b c:{limit}>"),
        ("string", "something else"),
    ]
    type_, chosen = draw(st.sampled_from(shapes))
    metadata = {**draw(METADATA), "__CHAR_VARCHAR_TYPE_STRING": chosen}
    return {"name": draw(NAMES), "type": type_, "nullable": draw(st.booleans()), "metadata": metadata}


def _containers(
    inner: st.SearchStrategy[Any], more: st.SearchStrategy[dict[str, Any]] | None
) -> st.SearchStrategy[Any]:
    field = fields(inner) if more is None else st.one_of(fields(inner), more)
    return st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "elementType": inner, "containsNull": st.booleans()}),
        st.fixed_dictionaries(
            {"type": st.just("map"), "keyType": inner, "valueType": inner, "valueContainsNull": st.booleans()}
        ),
        st.fixed_dictionaries({"type": st.just("struct"), "fields": st.lists(field, max_size=3)}),
    )


SPARK_3_TYPES = st.recursive(ATOMS, lambda inner: _containers(inner, None), max_leaves=6)
TYPES = st.recursive(
    st.one_of(LATER_ATOMS, UDTS), lambda inner: _containers(inner, collated_fields() | limited_fields()), max_leaves=6
)
SPARK_3_SCHEMAS = st.fixed_dictionaries(
    {"type": st.just("struct"), "fields": st.lists(fields(SPARK_3_TYPES), max_size=4)}
)
SCHEMAS = st.fixed_dictionaries(
    {
        "type": st.just("struct"),
        "fields": st.lists(st.one_of(fields(TYPES), collated_fields(), limited_fields()), max_size=4),
    }
)


def data_type(value: Any) -> DataType:
    return parse_json(json.dumps(value))
