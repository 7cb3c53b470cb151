"""`headwater validate` of jobs that replaced one partition of several: it has to see a fault in that one, and that
another one was replaced as well, with rows or by nothing. The tables have grown since.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from headwater.cli.exits import Exit
from tests.kit.cases.validation import FORMATS, ValidationPlace

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

SCRIPT: Final = """
import sys
from pyspark.sql import SparkSession

db, way, using, *more = sys.argv[1:]
spark = SparkSession.builder.appName(way).getOrCreate()
WRONG = "+ 1" if "bug" in more else ""
ORDERS = f"SELECT id, amount {WRONG} AS amount, shop FROM {db}.orders WHERE shop"
table = f"{db}.{way}"

def replace_partitions(query):
    if using == "iceberg":
        spark.sql(query).writeTo(table).overwritePartitions()
    else:
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        spark.sql(f"INSERT OVERWRITE {table} {query}")

def replace_partition(shop, query):
    if using == "delta":
        writer = spark.sql(query).write.format("delta").mode("overwrite")
        writer.option("replaceWhere", f"shop = '{shop}'").saveAsTable(table)
    else:
        spark.sql(f"INSERT OVERWRITE {table} PARTITION (shop = '{shop}') SELECT id, amount FROM ({query})")

if way == "by_rows":
    replace_partitions(f"{ORDERS} IN ('b', {'c' if 'wider' in more else 'b'!r})")
else:
    replace_partition("b", f"{ORDERS} = 'b'")
    if "emptied" in more:
        replace_partition("c", f"{ORDERS} = 'q'")
spark.stop()
"""
WAYS: Final = ("by_rows", "by_name")
"""Which partition is replaced is found in the rows, or named by the statement."""


def statements(using: str, db: str) -> list[str]:
    columns = f"(id INT, amount INT, shop STRING) USING {using}"
    before = "(100, 1, 'a'), (101, 1, 'a'), (200, 2, 'b'), (201, 2, 'b'), (300, 3, 'c')"
    tables = [(f"CREATE TABLE {db}.{way} {columns} PARTITIONED BY (shop)", way) for way in WAYS]
    return [
        f"CREATE DATABASE {db}",
        f"CREATE TABLE {db}.orders {columns}",
        f"INSERT INTO {db}.orders VALUES (2, 20, 'b'), (3, 30, 'b'), (4, 40, 'c')",
        *(statement for create, way in tables for statement in (create, f"INSERT INTO {db}.{way} VALUES {before}")),
    ]


@pytest.fixture(scope="module", params=[pytest.param(each, marks=pytest.mark.needs(each)) for each in FORMATS])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> ValidationPlace:
    using = request.param
    extensions, db = FORMATS[using]
    found = ValidationPlace(tmp_path_factory.mktemp(using), java_home, extensions, db, using)
    found.place.script(SCRIPT, "partitions.py")
    later = [
        f"INSERT INTO {db}.orders VALUES (5, 50, 'b'), (6, 60, 'q')",
        *(f"INSERT INTO {db}.{way} VALUES (7, 7, 'a'), (8, 8, 'b')" for way in WAYS),
    ]
    found.record(statements(using, db), [[way, using] for way in WAYS], later, "partitions.py")
    return found


def differences(place: ValidationPlace, way: str, *changes: str) -> tuple[Exit, int, list[str]]:
    """Return how a changed job's validation ended: its exit code, how many rows are equal, and all others."""
    files = place.files()
    sink, job = f"{place.database}.{way}@{place.newest(way)}", " ".join((way, place.using, *changes))
    ended, answer = place.validate(sink, job, "--key", "id", script="partitions.py")
    assert "rows" in answer, (answer, ended.err[-3000:])
    assert place.files() == files
    found = [f"{each['key']}: {each['recorded']} -> {each['result']}" for each in answer.get("different", [])]
    found += [f"recorded: {each['row']}" for each in answer.get("rows_only_recorded", [])]
    found += [f"result: {each['row']}" for each in answer.get("rows_only_in_the_result", [])]
    return Exit(ended.code), answer["rows"]["equal"], found


@pytest.mark.parametrize("way", WAYS)
def test_a_replaced_partition_comes_out_equal(place: ValidationPlace, way: str) -> None:
    """By hand: the orders 2 and 3, and those rows of the shops a and c that were there. Fails if the partitions that
    stay are missing in the result, or if others' later rows are compared."""
    assert differences(place, way) == (Exit.DONE, 5, [])


def test_a_fault_in_the_replaced_partition_is_found(place: ValidationPlace) -> None:
    assert differences(place, "by_rows", "bug") == (Exit.FAILED, 3, ["id=2: 20 -> 21", "id=3: 30 -> 31"])


def test_a_partition_that_is_replaced_as_well_is_found(place: ValidationPlace) -> None:
    """The changed job also writes shop c, so that its old row goes."""
    rows = ["recorded: id=300, amount=3, shop=c", "result: id=4, amount=40, shop=c"]
    assert differences(place, "by_rows", "wider") == (Exit.FAILED, 4, rows)


def test_a_partition_that_is_emptied_is_found(place: ValidationPlace) -> None:
    """The changed job also replaces shop c by no rows. A comparison of the replaced partitions alone doesn't see it,
    because a result that begins empty looks the same."""
    rows = ["recorded: id=300, amount=3, shop=c"]
    assert differences(place, "by_name", "emptied") == (Exit.FAILED, 4, rows)
