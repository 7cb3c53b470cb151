"""Compares two versions of tables in Spark, as a validation compares a result with what was recorded."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from headwater.errors import ConfigurationError
from headwater.versions.spark_tables import load_table
from headwater.versions.validation.comparison import compare
from headwater.versions.validation.model import ResultComparison
from headwater.versions.validation.results import state_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def compare_versions(
    spark: SparkSession,
    one: tuple[str, int],
    other: tuple[str, int],
    *,
    key: Sequence[str] = (),
    ignored: Collection[str] = (),
    samples: int = 10,
) -> ResultComparison:
    """Return how the rows of a table at a snapshot differ from those of another table, or of another snapshot.

    The first one takes the place of what was recorded, the second one that of the result.
    """
    first, second = (_rows(spark, table, snapshot) for table, snapshot in (one, other))
    return compare(first, second, key=key, ignored=ignored, samples=samples)


def _rows(spark: SparkSession, table: str, snapshot: int) -> DataFrame:
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra

    try:
        found = load_table(spark, table)
        return state_at(spark, table, snapshot, found.provider.upper())
    except PySparkException as e:
        raise ConfigurationError(f"{table}@{snapshot} can't be read: {str(e).partition(chr(10))[0]}") from e
