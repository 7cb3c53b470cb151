"""Keeps the files of a lake few and its versions young, by the procedures of its format."""

from __future__ import annotations

from datetime import datetime

from headwater.consumers.spark.pipeline.lake.tables import LakeTables
from headwater.lineage.lake.formats import format_of
from headwater.lineage.lake.merging import lake_tables


def compact(lake: LakeTables, *, smallest: int = 5) -> dict[str, int]:
    """Rewrite the files of each table that has as many small ones as `smallest`. Return how many files were rewritten.

    Files of a table with a partition column are sorted by it, so that a MERGE finds the few that it has to read.
    """
    how = format_of(lake.address).compact
    return {
        name: how(lake.spark, lake.address, name, table.partition, smallest) for name, table in lake_tables().items()
    }


def expire(lake: LakeTables, before: datetime, *, retained: int = 1) -> dict[str, int]:
    """Remove the versions that are older than a time, but for the newest ones, with the files that only they have.
    Return how many data files were deleted."""
    how = format_of(lake.address).expire
    return {name: how(lake.spark, lake.address, name, before, retained) for name in lake_tables()}
