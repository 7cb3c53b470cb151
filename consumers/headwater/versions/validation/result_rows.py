"""Rows that a result begins with: copied from its sink, by the names of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headwater.errors import TerminalError

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import DataFrame, SparkSession

_VIEW: Final = "headwater_validation_copy"


class ResultRowsError(TerminalError):
    """Rows can't be copied into a result as they are."""


def insert_rows(spark: SparkSession, result: str, rows: DataFrame, *, but: Collection[str] = ()) -> None:
    """Insert rows into a result, whose name is quoted. Columns that the rows don't have yet are NULL, as they are in
    the sink; `but` are columns that the table's format fills."""
    import pyspark.sql.functions as f  # noqa: PLC0415 - with Spark only

    columns = [column for column in spark.table(result).columns if column not in but]
    known, there = ({name.casefold() for name in names} for names in (columns, rows.columns))
    if gone := [column for column in rows.columns if column.casefold() not in known]:
        raise ResultRowsError(f"column {gone[0]} was dropped from the sink since, so its rows of then don't fit")
    values = (f.col(f"`{column}`") if column.casefold() in there else f.lit(None).alias(column) for column in columns)
    rows.select(*values).createOrReplaceTempView(_VIEW)
    try:
        spark.sql(f"INSERT INTO {result} SELECT * FROM {_VIEW}")  # noqa: S608 - names of ours
    finally:
        spark.catalog.dropTempView(_VIEW)
