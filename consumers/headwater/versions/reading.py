"""Reads tables at versions that belong together, for a block of statements."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.lineage.client import Lineage
from headwater.versions.answers import AlignedTable, AlignmentAnswer
from headwater.versions.fixed_versions import At
from headwater.versions.questions import LOOK_BACK, align

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def reading(
    spark: SparkSession,
    source: Lineage | Connection,
    tables: Sequence[str],
    *,
    at: At = None,
    allowed: Collection[str] = (),
    look_back: int = LOOK_BACK,
    look_back_time: timedelta | None = None,
) -> Generator[AlignmentAnswer, None, None]:
    """Have all statements of a block read these tables at the newest versions that belong together.

        with versions.reading(spark, lineage, ["lake.db.b", "lake.db.c"]) as found:
            spark.sql("SELECT … FROM lake.db.b JOIN lake.db.c USING (id)")

    The versions are chosen once, when the block begins, as `align` does. Name tables as statements of this session can.
    A table that was dropped and made again since is refused, where its format tells that (Iceberg, Delta).
    Other tables are refused by name, unless they are `allowed`: those are read as they are now. The block says which
    versions are read, and how far the lineage behind them is known.

    A NoAlignmentError says why no versions belong together; nothing is read then.
    """
    from headwater.lens import lens  # noqa: PLC0415 - it is for drivers, and the questions need none

    versions = [table for table in tables if "@" in table]
    if versions:
        raise ConfigurationError(f"{versions[0]!r} names a version: name tables alone, and give versions by at=")
    found = align(source, tables, at=at, look_back=look_back, look_back_time=look_back_time)
    rows = dict(zip(tables, found.rows, strict=True))
    pins = {name: _version_of(row) for name, row in rows.items()}
    generations = {name: row.table.generation for name, row in rows.items() if row.table.generation is not None}
    with lens(spark, pins=pins, generations=generations, allowed=allowed, name="consistent reads"):
        yield found


def _version_of(row: AlignedTable) -> int:
    """Return what a lens pins a table to."""
    if row.table.snapshot is None:
        raise ConfigurationError(f"{row.table.label} has no number that it could be read at: leave it out, or allow it")
    return row.table.snapshot
