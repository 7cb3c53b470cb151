"""The comparison of two DataFrames beside Python's own of their rows, and cases whose answer was found by hand."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater.errors import ConfigurationError
from headwater.versions.validation.comparison import compare
from tests.kit.spark.driver import PLAIN, shared_driver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.versions.validation.model import ResultComparison

pytestmark = [pytest.mark.xdist_group("spark-plain"), pytest.mark.long]


@pytest.fixture(scope="module")
def spark(java_home: Path) -> SparkSession:
    return shared_driver(java_home, PLAIN).spark


def of(spark: SparkSession, one: str, other: str, **more: Any) -> ResultComparison:
    return compare(spark.sql(one), spark.sql(other), **more)


def counts(found: ResultComparison) -> tuple[int, int, int, int | None]:
    return found.equal, found.only_recorded, found.only_result, found.different


def values(*rows: str) -> str:
    return f"SELECT * FROM VALUES {', '.join(rows)} AS t"


@pytest.mark.smoke
def test_rows_without_a_key_are_counted(spark: SparkSession) -> None:
    """Fails if a row that is there twice counts once."""
    one, other = values("(1, 'a')", "(1, 'a')", "(2, NULL)"), values("(1, 'a')", "(2, NULL)", "(2, NULL)", "(3, 'c')")
    found = of(spark, f"{one}(id, v)", f"{other}(id, v)")
    assert counts(found) == (2, 1, 2, None)
    assert [(each.count, dict(each.values)) for each in found.samples_only_recorded] == [(1, {"id": "1", "v": "a"})]
    assert [dict(each.values) for each in found.samples_only_result] == [
        {"id": "2", "v": None},
        {"id": "3", "v": "c"},
    ]
    assert not found.is_equal


def test_rows_of_one_key_are_compared_by_column(spark: SparkSession) -> None:
    one = values("(1, 'a', 1.5)", "(2, 'b', 2.5)", "(3, NULL, 3.5)", "(NULL, 'n', 0)", "(8, 'x', 1)")
    other = values("(1, 'a', 1.5)", "(2, 'B', 9.5)", "(3, 'c', 3.5)", "(NULL, 'n', 0)", "(9, 'y', 1)")
    found = of(spark, f"{one}(id, v, n)", f"{other}(id, v, n)", key=["ID"])
    assert counts(found) == (2, 1, 1, 2)
    assert {each.name: each.different for each in found.columns} == {"id": None, "v": 2, "n": 1}
    assert [(dict(each.key), dict(each.columns)) for each in found.samples_different] == [
        ({"id": "2"}, {"v": ("b", "B"), "n": ("2.5", "9.5")}),
        ({"id": "3"}, {"v": (None, "c")}),
    ]


def test_rows_whose_key_isnt_unique_are_counted(spark: SparkSession) -> None:
    """Fails if a row that the result has twice is lost, or if equal rows of one key are told as different."""
    one = values("(1, 'a')", "(2, 'b')", "(2, 'c')", "(NULL, 'n')", "(NULL, 'n')", "(5, 'e')", "(5, 'e')")
    other = values("(1, 'a')", "(1, 'a')", "(2, 'c')", "(2, 'b')", "(NULL, 'n')", "(NULL, 'm')")
    found = of(spark, f"{one}(id, v)", f"{other}(id, v)", key=["id"])
    assert found.repeated_keys == 3
    assert counts(found) == (4, 3, 2, 0)
    assert [(each.count, dict(each.values)) for each in found.samples_only_recorded] == [
        (1, {"id": None, "v": "n"}),
        (2, {"id": "5", "v": "e"}),
    ]


def test_what_is_equal_although_it_looks_otherwise(spark: SparkSession) -> None:
    """NULL, NaN, zeros, decimals, maps in another order, nested and binary values, order and case of columns."""
    one = """SELECT double('NaN') AS d, CAST(NULL AS STRING) AS n, 0.0D AS z, CAST(1.10 AS DECIMAL(10, 2)) AS dec,
        map('a', 1, 'b', NULL) AS m, array(named_struct('k', map(1, array(double('NaN'))))) AS nested, X'FF' AS b,
        DATE'2026-01-31' AS day"""
    other = """SELECT DATE'2026-01-31' AS DAY, double('NaN') AS d, CAST(NULL AS STRING) AS n, -0.0D AS z, X'FF' AS b,
        CAST(1.1 AS DECIMAL(10, 2)) AS dec, map('b', NULL, 'a', 1) AS m,
        array(named_struct('k', map(1, array(double('NaN'))))) AS nested"""
    for key in ([], ["day"], ["m", "nested"]):
        found = of(spark, one, other, key=key)
        assert found.is_equal, (key, found)
        assert found.equal == 1
        assert found.is_reordered


@pytest.mark.parametrize(
    ("recorded", "result"),
    [
        ("map('a', 1)", "map('a', 2)"),
        ("named_struct('x', 1, 'y', CAST(NULL AS INT))", "named_struct('x', 1, 'y', 0)"),
        ("CAST(NULL AS STRUCT<x: INT>)", "named_struct('x', CAST(NULL AS INT))"),
        ("CAST(NULL AS MAP<STRING, INT>)", "CAST(map() AS MAP<STRING, INT>)"),
        ("array(1, 2)", "array(2, 1)"),
        ("CAST(0.1 AS DECIMAL(38, 18))", "CAST(0.100000000000000001 AS DECIMAL(38, 18))"),
        ("TIMESTAMP'2026-01-31 00:00:00.000001'", "TIMESTAMP'2026-01-31 00:00:00'"),
        ("X'00'", "X''"),
        ("''", "CAST(NULL AS STRING)"),
    ],
)
def test_what_differs_although_it_looks_equal(spark: SparkSession, recorded: str, result: str) -> None:
    for key in ([], ["id"]):
        found = of(spark, f"SELECT 1 AS id, {recorded} AS v", f"SELECT 1 AS id, {result} AS v", key=key)
        assert not found.is_equal
        assert found.equal == 0


def test_columns_that_are_missing_or_of_another_type_are_said(spark: SparkSession) -> None:
    """Fails if a column that only one side has is passed over, or if other types with equal values count as equal."""
    one, other = "SELECT 1 AS id, 'x' AS gone, now() AS loaded_at", "SELECT 1L AS id, 2 AS more, now() AS Loaded_At"
    found = of(spark, one, other, ignored=["loaded_at"])
    assert (found.missing_in_result, found.missing_in_recorded) == (("gone",), ("more",))
    assert found.ignored == ("loaded_at", "Loaded_At")
    assert [(each.name, each.recorded_type, each.result_type) for each in found.columns] == [("id", "int", "bigint")]
    assert found.equal == 1
    assert not found.is_equal
    assert not of(spark, "SELECT 1 AS a", "SELECT 1L AS a").is_equal
    assert of(spark, "SELECT 1 AS a", "SELECT map(1, 2) AS a").equal == 0
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        found = of(spark, "SELECT 1 AS a, 2 AS A", "SELECT 2 AS A, 1 AS a")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert found.is_equal
    assert found.is_reordered


def test_columns_that_arent_there_are_an_error(spark: SparkSession) -> None:
    for more, words in (
        ({"key": ["nothing"]}, "no column 'nothing'"),
        ({"ignored": ["nothing"]}, "no column 'nothing'"),
        ({"key": ["a"], "ignored": ["a"]}, "in the key and ignored"),
        ({"key": ["b"]}, "only one side has it"),
        ({"ignored": ["a", "b"]}, "no column is compared"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            of(spark, "SELECT 1 AS a, 2 AS b", "SELECT 1 AS a", **more)


def test_samples_are_few_and_the_first(spark: SparkSession) -> None:
    one, other = "SELECT id, id AS v FROM range(1000)", "SELECT id, id + 1 AS v FROM range(1000)"
    found = of(spark, one, other, key=["id"], samples=3)
    assert counts(found) == (0, 0, 0, 1000)
    assert [dict(each.key) for each in found.samples_different] == [{"id": "0"}, {"id": "1"}, {"id": "2"}]
    found = of(spark, one, "SELECT id, id AS v FROM range(0)", samples=2)
    assert [each.values["id"] for each in found.samples_only_recorded] == ["0", "1"]


@pytest.mark.spark4  # VARIANT
def test_values_without_an_order(spark: SparkSession) -> None:
    one, other = "SELECT 1 AS id, parse_json('{\"a\": 1}') AS v", "SELECT 1 AS id, parse_json('{\"a\": 2}') AS v"
    assert of(spark, one, one).is_equal
    assert of(spark, one, other, key=["id"]).different == 1


@pytest.mark.parametrize("seed", range(6))
def test_random_rows_beside_pythons_counting(spark: SparkSession, seed: int) -> None:
    """Rows of few values, so that keys repeat, are NULL, and meet."""
    dice = random.Random(seed)
    sides = [[(_some(dice, 4), _some(dice, 2), _some(dice, 2)) for _ in range(dice.randrange(12))] for _ in range(2)]
    frames = [spark.createDataFrame(rows, "k int, a int, b int") for rows in sides]
    one, other = (Counter(rows) for rows in sides)
    equal = sum((one & other).values())
    found = compare(*frames)
    assert counts(found) == (equal, len(sides[0]) - equal, len(sides[1]) - equal, None)
    keyed = compare(*frames, key=["k"])
    keys = [Counter(row[0] for row in rows) for rows in sides]
    paired = {key for key in keys[0] if keys[0][key] == keys[1][key] == 1}
    of_key = [{row[0]: row for row in rows if row[0] in paired} for rows in sides]
    different = sum(1 for key in paired if of_key[0][key] != of_key[1][key])
    expected = (equal, len(sides[0]) - equal - different, len(sides[1]) - equal - different, different)
    assert counts(keyed) == expected


def _some(dice: random.Random, most: int) -> int | None:
    found = dice.randrange(-1, most)
    return None if found < 0 else found
