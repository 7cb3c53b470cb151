"""Rows of an earlier version of a sink in a result that is made like the sink of now."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.versions.validation.hudi_tables import ResultRowsError, insert_rows
from tests.kit.spark.driver import PLAIN, shared_driver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark-plain"), pytest.mark.long]
RESULT = "`spark_catalog`.`default`.`result_rows`"


@pytest.fixture
def spark(java_home: Path) -> Iterator[SparkSession]:
    session = shared_driver(java_home, PLAIN).spark
    session.sql(f"CREATE TABLE {RESULT} (filled STRING, id INT, note STRING) USING parquet")
    yield session
    session.sql(f"DROP TABLE {RESULT}")


@pytest.mark.smoke
def test_columns_are_matched_by_their_names(spark: SparkSession) -> None:
    """Fails if they go by their places, or if a column that was added since must be there."""
    insert_rows(spark, RESULT, spark.sql("SELECT 'n' AS NOTE, 1 AS id UNION ALL SELECT NULL, 2"))
    assert sorted(map(tuple, spark.table(RESULT).collect())) == [(None, 1, "n"), (None, 2, None)]


def test_a_column_that_was_dropped_since_is_an_error(spark: SparkSession) -> None:
    """Fails if its values are left out: then the result would begin with other rows than the sink had."""
    with pytest.raises(ResultRowsError, match="column price was dropped from the sink since"):
        insert_rows(spark, RESULT, spark.sql("SELECT 1 AS id, 'n' AS note, 9 AS price"))
    assert spark.table(RESULT).count() == 0
    assert not spark.catalog.tableExists("headwater_validation_copy")
