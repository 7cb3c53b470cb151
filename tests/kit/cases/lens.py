"""Tables whose rows say which version was read, and the ways to read them that a lens has to see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

from headwater.lens import lens
from tests.kit.spark.driver import Driver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Read: TypeAlias = "Callable[[SparkSession, str], DataFrame]"
WRITES: Final = 3
"""Version n of a table holds the ids from 1 to n, so its rows tell the version."""


def fill(driver: Driver, table: str, using: str) -> None:
    """Make a table, and write one row in each of three commits."""
    driver.run(f"CREATE TABLE {table} (id INT) USING {using}")
    driver.run(*(f"INSERT INTO {table} VALUES ({number})" for number in range(1, WRITES + 1)))


def ids(frame: DataFrame) -> list[Any]:
    return sorted(row[0] for row in frame.collect())


def _in_view(spark: SparkSession, table: str, kind: str) -> DataFrame:
    spark.sql(f"CREATE OR REPLACE {kind} lens_view AS SELECT * FROM {table}")
    return spark.table("lens_view")


def _registered(spark: SparkSession, table: str) -> DataFrame:
    spark.table(table).createOrReplaceTempView("lens_frame")
    return spark.table("lens_frame")


def _cached(spark: SparkSession, table: str) -> DataFrame:
    frame = spark.table(table).cache()
    frame.count()
    return spark.table(table)


def refuses_frames_of_another_pin(spark: SparkSession, table: str, one: int, other: int) -> None:
    """Check that what was pinned to one version isn't read under a lens that pins the table to another."""
    with lens(spark, pins={table: one}, name="the first"):
        frames = [spark.table(table).select("id") for _ in range(4)]
        frames[0].createOrReplaceTempView("of_another_pin")
        expected = ids(spark.table(table).select("id"))
    with lens(spark, pins={table: other}):
        new = spark.table(table).select("id")
        assert ids(new) != expected
        of_view = lambda: spark.table("of_another_pin").join(new, "id")  # noqa: E731
        for read in (frames[0].collect, lambda: frames[0].union(new), of_view):
            with pytest.raises(Exception, match=rf"{table} is read at {other}, and a DataFrame, .* at {one}"):
                read()
    with lens(spark, pins={table: one}):
        same = frames[1].join(spark.table(table), "id").select("id")
        assert ids(frames[1]) == ids(same) == expected, "it is the same version"
    with lens(spark, reads_elsewhere=True), pytest.raises(Exception, match=rf"as it is now, .* DataFrame.* at {one}"):
        frames[2].collect()
    assert ids(frames[3]) == expected


READS: Final[Mapping[str, Read]] = {
    "sql": lambda spark, t: spark.sql(f"SELECT * FROM {t}"),
    "alias": lambda spark, t: spark.sql(f"SELECT a.id FROM {t} AS a"),
    "spark.table": lambda spark, t: spark.table(t),
    "read.table": lambda spark, t: spark.read.table(t),
    "DataFrame API over it": lambda spark, t: spark.table(t).where("id > 0").select("id"),
    "short name": lambda spark, t: (spark.sql(f"USE {t.rpartition('.')[0]}"), spark.table(t.rpartition(".")[2]))[1],
    "CTE": lambda spark, t: spark.sql(f"WITH c AS (SELECT * FROM {t}) SELECT a.id FROM c a JOIN c b USING (id)"),
    "subquery in FROM": lambda spark, t: spark.sql(f"SELECT id FROM (SELECT * FROM {t})"),
    "IN": lambda spark, t: spark.sql(f"SELECT cast(id AS INT) FROM range(9) WHERE id IN (SELECT id FROM {t})"),
    "EXISTS": lambda spark, t: spark.sql(
        f"SELECT id FROM range(9) r WHERE EXISTS (SELECT 1 FROM {t} x WHERE x.id = r.id)"
    ),
    "scalar subquery": lambda spark, t: spark.sql(f"SELECT explode(sequence(1, (SELECT max(id) FROM {t})))"),
    "UNION": lambda spark, t: spark.sql(f"SELECT id FROM {t} UNION SELECT id FROM {t}"),
    "LATERAL": lambda spark, t: spark.sql(f"SELECT DISTINCT x.id FROM range(2) r, LATERAL (SELECT id FROM {t}) x"),
    "temporary view": lambda spark, t: _in_view(spark, t, "TEMP VIEW"),
    "temporary view of a DataFrame": _registered,
    "cached": _cached,
}
