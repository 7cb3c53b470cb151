"""Types as SQL writes them."""

from __future__ import annotations

import json

import pytest

from headwater.events.types import (
    MAX_NESTING,
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
    TypeTextError,
    UserDefined,
    Varchar,
    parse_ddl,
    simple_string,
    to_ddl,
)

INT = Simple("integer")
STRING = Simple("string")
VECTOR = UserDefined('{"type":"udt","sqlType":{"type":"array","elementType":"double","containsNull":false}}')

READ: list[tuple[str, DataType]] = [
    ("tinyint", Simple("byte")),
    ("BYTE", Simple("byte")),
    ("smallint", Simple("short")),
    ("int", INT),
    ("INTEGER", INT),
    ("bigint", Simple("long")),
    ("long", Simple("long")),
    ("real", Simple("float")),
    ("timestamp_ltz", Simple("timestamp")),
    ("timestamp_ntz", Simple("timestamp_ntz")),
    ("void", Simple("void")),
    ("interval", Simple("interval")),
    ("INTERVAL DAY TO SECOND", Simple("interval day to second")),
    ("interval year", Simple("interval year")),
    ("decimal", Decimal(10, 0)),
    ("dec(5)", Decimal(5, 0)),
    ("numeric(5, 2)", Decimal(5, 2)),
    ("decimal(9,-2)", Decimal(9, -2)),
    ("character(3)", Char(3)),
    ("varchar(9)", Varchar(9)),
    ("time", Time(6)),
    ("time(3)", Time(3)),
    ("string collate UNICODE_CI", Collated("UNICODE_CI")),
    ("STRING COLLATE utf8_binary", STRING),
    ("array<int>", Array(INT)),
    ("ARRAY < MAP<STRING,ARRAY<INT>> >", Array(Map(STRING, Array(INT)))),
    ("struct<>", Struct()),
    ("struct<a:int,b:decimal(10,2)>", Struct((Field("a", INT), Field("b", Decimal(10, 2))))),
    (
        "STRUCT<a: INT NOT NULL COMMENT 'it\\'s', `b ``c` STRING comment \"x\">",
        Struct(
            (
                Field("a", INT, nullable=False, metadata='{"comment":"it\'s"}'),
                Field("b `c", STRING, metadata='{"comment":"x"}'),
            )
        ),
    ),
    ("a INT, b STRING NOT NULL", Struct((Field("a", INT), Field("b", STRING, nullable=False)))),
    ("a: int", Struct((Field("a", INT),))),
    ("`interval day` int", Struct((Field("interval day", INT),))),
    ("interval int, string string", Struct((Field("interval", INT), Field("string", STRING)))),
    ("struct<struct:struct<array:array<int>>>", Struct((Field("struct", Struct((Field("array", Array(INT)),))),))),
    ("geometry(4326)", Opaque('"geometry(4326)"')),
    ("array<Geography(OGC:CRS84, SPHERICAL)>", Array(Opaque('"geography(OGC:CRS84, SPHERICAL)"'))),
]


@pytest.mark.parametrize(("text", "type_"), READ)
def test_sql_is_read(text: str, type_: DataType) -> None:
    assert parse_ddl(text) == type_
    assert parse_ddl(to_ddl(type_)) == type_


@pytest.mark.parametrize(
    ("literal", "said"),
    [
        ("'plain'", "plain"),
        ("''", ""),
        ("'it''s'", "it's"),
        ('"say ""x"""', 'say "x"'),
        ("\"it''s\"", "it''s"),
        (r"'a\tb\n\\\'\"'", "a\tb\n\\'\""),
        (r"'\u00e9\U0001F600\101\0'", "é\U0001f600A\0"),
        (r"'50\% \_ \q'", r"50\% \_ q"),
    ],
)
def test_comments_are_unescaped_as_spark_does(literal: str, said: str) -> None:
    type_ = parse_ddl(f"a INT COMMENT {literal}")
    assert type_ == parse_ddl(to_ddl(type_))
    assert isinstance(type_, Struct)
    assert json.loads(type_.fields[0].metadata) == {"comment": said}


@pytest.mark.parametrize(
    ("type_", "ddl", "short"),
    [
        (Array(INT, contains_null=False), "ARRAY<INT>", "array<int>"),
        (Collated("de_CI"), "STRING COLLATE de_CI", "string collate de_CI"),
        (Struct((Field("a.b", INT, nullable=False),)), "STRUCT<`a.b`: INT NOT NULL>", "struct<a.b:int>"),
        (Struct((Field("7", INT),)), "STRUCT<`7`: INT>", "struct<7:int>"),
        (VECTOR, "ARRAY<DOUBLE>", "array<double>"),
        (Opaque('"geometry(4326)"'), "geometry(4326)", "geometry(4326)"),
    ],
)
def test_sql_is_written(type_: DataType, ddl: str, short: str) -> None:
    assert to_ddl(type_) == ddl
    assert simple_string(type_) == short


@pytest.mark.parametrize("type_", [Opaque('{"type":"tensor"}'), UserDefined('{"type":"udt","pyClass":"x"}')])
def test_what_sql_has_no_words_for_is_refused(type_: DataType) -> None:
    with pytest.raises(TypeTextError, match="has no form in SQL"):
        to_ddl(type_)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "expected a type at character 0, found 'the end'"),
        ("array", "expected array as Spark has it"),
        ("array<", "expected a type at character 6"),
        ("array<int", "expected '>' at character 9"),
        ("array<int>>", "expected the end at character 10, found '>'"),
        ("map<int>", "expected ',' at character 7, found '>'"),
        ("struct<a>", "expected a type at character 8"),
        ("struct<a int", "expected '>' at character 12"),
        ("struct<a int,>", "expected the name of a column at character 13"),
        ("struct<`` int>", "expected the name of a column"),
        ("a int, b", "expected a type at character 8"),
        ("decimal(39,0)", "expected decimal as Spark has it"),
        ("decimal(2,3)", "expected decimal as Spark has it"),
        ("decimal(x)", "expected decimal as Spark has it"),
        ("int(4)", "expected int as Spark has it"),
        ("char", "expected char as Spark has it"),
        ("char(3", "expected ')'"),
        ("time(7)", "expected time as Spark has it"),
        ("interval day to year", "expected an interval that Spark has"),
        ("a int comment 5", "expected a comment in quotes at character 14"),
        ("a int comment 'open", "expected a comment in quotes"),
        ("a int not nil", "expected the end at character 6, found 'not'"),
        ("a$ int", "expected"),
        ("`open int", "expected a type"),
        ("array<" * 100_000, f"more than {MAX_NESTING} types in each other"),
        ("struct<a:" * 100_000, f"more than {MAX_NESTING} types in each other"),
        ("\ud800", "half a surrogate pair"),
    ],
)
def test_what_is_no_sql_type_is_told_with_its_place(text: str, told: str) -> None:
    with pytest.raises(TypeTextError) as error:
        parse_ddl(text)
    assert told in str(error.value)
    assert len(str(error.value)) < 300


def test_sql_nests_up_to_the_limit() -> None:
    deep = "array<" * MAX_NESTING + "int" + ">" * MAX_NESTING
    assert simple_string(parse_ddl(deep)) == deep
    with pytest.raises(TypeTextError, match="in each other"):
        parse_ddl(f"array<{deep}>")
