"""Spark's JSON of types: each kind by hand, and what is recorded of a text that isn't one."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from headwater.events.types import (
    MAX_NESTING,
    MAX_TEXT,
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
    VarcharType,
    columns_from_schema_json,
    parse_json,
    simple_string,
    to_json,
)

INTEGER = SimpleType("integer")
STRING = SimpleType("string")
COLLATED = (
    '{"type":"struct","fields":[{"name":"a","type":{"type":"array","elementType":"string","containsNull":true},'
    '"nullable":true,"metadata":{"x":1,"__COLLATIONS":{"a.element":"icu.UNICODE_CI"}}}]}'
)

KINDS: list[tuple[str, DataType]] = [
    *[
        (f'"{name}"', SimpleType(name))
        for name in (
            *("string", "boolean", "byte", "short", "integer", "long", "float", "double", "binary", "date"),
            *("timestamp", "timestamp_ntz", "void", "variant", "interval", "interval day", "interval day to second"),
            *("interval hour to minute", "interval second", "interval year", "interval year to month"),
        )
    ],
    ('"decimal(38,18)"', DecimalType(38, 18)),
    ('"decimal(9,-2)"', DecimalType(9, -2)),
    ('"char(3)"', CharType(3)),
    ('"varchar(65535)"', VarcharType(65535)),
    ('"time(6)"', TimeType(6)),
    ('"string collate UNICODE_CI"', CollatedStringType("UNICODE_CI")),
    ('{"type":"array","elementType":"integer","containsNull":false}', ArrayType(INTEGER, contains_null=False)),
    (
        '{"type":"map","keyType":"string","valueType":"integer","valueContainsNull":true}',
        MapType(STRING, INTEGER),
    ),
    ('{"type":"struct","fields":[]}', StructType()),
    (
        '{"type":"struct","fields":[{"name":"a.b","type":"integer","nullable":false,"metadata":{"n":1.50,"b":[true,null]}}]}',
        StructType((StructField("a.b", INTEGER, nullable=False, metadata='{"n":1.50,"b":[true,null]}'),)),
    ),
    (
        COLLATED,
        StructType((StructField("a", ArrayType(CollatedStringType("UNICODE_CI")), metadata='{"x":1}'),)),
    ),
    (
        '{"type":"udt","class":"o.a.s.VectorUDT","pyClass":"p.VectorUDT","sqlType":"binary"}',
        UserDefinedType('{"type":"udt","class":"o.a.s.VectorUDT","pyClass":"p.VectorUDT","sqlType":"binary"}'),
    ),
    ('"geography(OGC:CRS84, SPHERICAL)"', UnknownType('"geography(OGC:CRS84, SPHERICAL)"')),
    ('"decimal(39,0)"', UnknownType('"decimal(39,0)"')),
    ('{"type":"tensor","shape":[2,3.0]}', UnknownType('{"type":"tensor","shape":[2,3.0]}')),
    (
        '{"type":"array","elementType":"integer","containsNull":true,"sorted":true}',
        UnknownType('{"type":"array","elementType":"integer","containsNull":true,"sorted":true}'),
    ),
    (
        '{"type":"struct","fields":[{"name":"a","type":"integer","id":7}]}',
        UnknownType('{"type":"struct","fields":[{"name":"a","type":"integer","id":7}]}'),
    ),
]


@pytest.mark.parametrize(("text", "type_"), KINDS, ids=[text[:60] for text, _ in KINDS])
def test_each_kind_is_read_and_written(text: str, type_: DataType) -> None:
    assert parse_json(text) == type_
    assert to_json(type_) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('"null"', '"void"'),
        ('"timestamp_ltz"', '"timestamp"'),
        ('"decimal"', '"decimal(10,0)"'),
        ('"decimal( 5 , 2 )"', '"decimal(5,2)"'),
        ('"string collate UTF8_BINARY"', '"string"'),
        (
            ' {"fields": [{"type": "long", "name": "\\u00e9"}], "type": "struct"} ',
            '{"type":"struct","fields":[{"name":"é","type":"long","nullable":true,"metadata":{}}]}',
        ),
        (
            '{"type":"struct","fields":[{"name":"a","type":"string collate DE","metadata":null}]}',
            '{"type":"struct","fields":[{"name":"a","type":"string","nullable":true,"metadata":{"__COLLATIONS":{"a":"icu.DE"}}}]}',
        ),
    ],
)
def test_older_and_looser_forms_are_read_and_written_as_spark_writes_today(text: str, canonical: str) -> None:
    assert to_json(parse_json(text)) == canonical


@pytest.mark.parametrize(
    "collations",
    [
        '{"other":"icu.UNICODE_CI"}',
        '{"a":"icu.UNICODE_CI","b":"icu.UNICODE_CI"}',
        '{"a":"spark.UNICODE_CI"}',
        '{"a":"UNICODE_CI"}',
        '{"a":5}',
        "{}",
        "[]",
    ],
)
def test_collations_that_do_not_fit_are_left_as_they_are(collations: str) -> None:
    text = (
        '{"type":"struct","fields":[{"name":"a","type":"string","nullable":true,'
        f'"metadata":{{"__COLLATIONS":{collations}}}}}]}}'
    )
    type_ = parse_json(text)
    assert isinstance(type_, StructType)
    assert type_.fields[0].type == STRING
    assert to_json(type_) == text


def test_numbers_in_metadata_keep_their_digits() -> None:
    digits = "123456789012345678901234567890.1000E+5"
    text = f'{{"type":"struct","fields":[{{"name":"a","type":"long","nullable":true,"metadata":{{"n":{digits}}}}}]}}'
    assert digits in to_json(parse_json(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON: Expecting value at character 0"),
        ("integer", "not JSON"),
        ('{"type":"array"', "not JSON: Expecting ',' delimiter at character 15"),
        ("null", "at the top: a type is a name or an object, not null"),
        ("5", "not a number"),
        ("true", "not a boolean"),
        ("[]", "not a list"),
        ('""', "the name of the type is empty"),
        ("{}", "at the top: 'type' is missing"),
        ('{"type":"array","elementType":"long"}', "at the top: 'containsNull' is missing"),
        ('{"type":"array","containsNull":true}', "'elementType' is missing"),
        ('{"type":"array","elementType":"long","containsNull":1}', "'containsNull' must be a boolean, not a number"),
        ('{"type":"map","keyType":"long","valueType":7,"valueContainsNull":true}', "at valueType: a type is"),
        ('{"type":"struct","fields":{}}', "'fields' must be a list, not an object"),
        ('{"type":"struct","fields":["a"]}', "at fields[0]: a field is an object, not a string"),
        (
            '{"type":"struct","fields":[{"name":"a","type":"long"},{"name":"b","type":{"type":"map","keyType":4}}]}',
            "at fields[1].type.keyType: a type is a name or an object, not a number",
        ),
        ('{"type":"struct","fields":[{"name":7,"type":"long"}]}', "'name' must be a string, not a number"),
        ('{"type":"struct","fields":[{"name":"a","type":"long","metadata":[]}]}', "'metadata' must be an object"),
        ('{"type":"struct","fields":[{"name":"a","type":"long","nullable":"no"}]}', "'nullable' must be a boolean"),
        ('{"type":"array","type":"map"}', "the key 'type' stands twice"),
        ('"\\ud800"', "half a surrogate pair"),
        ('"\ud800"', "half a surrogate pair"),
        ("[" * 100_000, "JSON nested 100000 levels deep"),
        ('{"type":"array","elementType":' * 100_000, "JSON nested 100000 levels deep"),
        ('{"type":{"type":' * 300 + '"[[["' + "}}" * 300, "JSON nested 600 levels deep"),
        (" " * (MAX_TEXT + 1), f"at most {MAX_TEXT} are read"),
    ],
)
def test_what_is_no_type_is_reported_with_its_place(text: str, message: str) -> None:
    with pytest.raises(TypeTextError) as error:
        parse_json(text)
    assert message in str(error.value)
    assert len(str(error.value)) < 500


def nested(levels: int) -> str:
    return '{"type":"array","elementType":' * levels + '"long"' + ',"containsNull":true}' * levels


def nested_structs(levels: int) -> str:
    return '{"type":"struct","fields":[{"name":"a","type":' * levels + '"long"' + "}]}" * levels


@pytest.mark.parametrize("make", [nested, nested_structs])
def test_types_nest_up_to_the_limit_and_no_deeper(make: Callable[[int], str]) -> None:
    deep = parse_json(make(MAX_NESTING))
    assert parse_json(to_json(deep)) == deep
    assert hash(deep) == hash(parse_json(to_json(deep)))
    with pytest.raises(TypeTextError, match=f"more than {MAX_NESTING} types in each other"):
        parse_json(make(MAX_NESTING + 1))


def test_brackets_in_names_and_texts_are_no_nesting() -> None:
    name = '["{\\' * 1000
    text = json.dumps({"type": "struct", "fields": [{"name": name, "type": "long"}] * 2})
    type_ = parse_json(text)
    assert isinstance(type_, StructType)
    assert type_.fields[1].name == name


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (parse_json, nested(MAX_NESTING)),
        (columns_from_schema_json, nested_structs(MAX_NESTING)),
    ],
)
def test_little_stack_left_is_reported_as_an_error_too(read: Callable[[str], object], text: str) -> None:

    def deeper(level: int) -> TypeTextError | None:
        try:
            return deeper(level + 1)
        except RecursionError:
            pass
        try:
            read(text)
        except TypeTextError as error:
            return error
        return None

    error = deeper(0)
    assert error is not None
    assert "stack" in str(error)


# Types as Spark shows and stores them in short.


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
