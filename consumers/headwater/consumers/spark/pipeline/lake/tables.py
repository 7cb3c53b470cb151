"""A lake's tables in a Spark session: makes them, merges rows, reads offsets, keeps files few."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from headwater.consumers.spark.pipeline.writing_tasks import retry_transient
from headwater.errors import TransientError
from headwater.events.redaction import redacted_excerpt
from headwater.lineage.lake import LakeAddress
from headwater.lineage.lake.formats import LakeFormat, format_of
from headwater.lineage.lake.merging import ARROW_TYPES, LakeTable, lake_tables
from headwater.lineage.lake.spark_reading import check_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOG: Final = logging.getLogger(__name__)
SCHEMA: Final = "name string, data binary"
"""How rows come to the driver's session: the name of a table, and rows of it. Without a name it is something else."""
_AT_ONCE: Final = 10_000


class LakeTables:
    """The tables of a lake. Threads may merge into different tables at the same time."""

    def __init__(self, spark: SparkSession, address: LakeAddress, patience: float = 300.0) -> None:
        """`patience` is for how many seconds a merge is tried again while others change its table."""
        self.spark: Final = spark
        self.address: Final = address
        self._patience = patience
        self._format = format_of(address)

    @classmethod
    def open(cls, spark: SparkSession, address: LakeAddress, patience: float = 300.0) -> LakeTables:
        """Make the tables that aren't there. Raises a ConfigurationError if the session can't write such tables, and
        a StoreSchemaError if they are of another version."""
        format_of(address).check_session(spark, address)
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {address.quoted_namespace}")
        there = {row.tableName for row in spark.sql(f"SHOW TABLES IN {address.quoted_namespace}").collect()}
        for name, table in lake_tables().items():
            if name not in there:
                spark.sql(table.create_text(address))
        check_version(address, spark)
        return cls(spark, address, patience)

    def merge(self, name: str, frame: DataFrame, bounds: tuple[int, int] | None = None) -> int:
        """Merge rows, each key of which is there once. Return how many changed the table.

        `bounds` are the least and the greatest value of the table's partition column. It is tried again while others
        change the table: a MERGE never writes over what it hasn't read.
        """
        return retry_transient(lambda: self._merge(lake_tables()[name], frame, bounds), self._patience)

    def frame_of(self, name: str, values: Sequence[Sequence[Any]]) -> DataFrame:
        """Return rows of the driver as a frame."""
        packed = self.spark.createDataFrame(list(pack(name, values)), SCHEMA)
        return self.unpacked(name, packed)

    def unpacked(self, name: str, packed: DataFrame, tasks: int = 1) -> DataFrame:
        """Return the rows of a table, unpacked by at most so many tasks."""
        columns = lake_tables()[name].columns
        data = packed.where(packed["name"] == name).select("data").coalesce(tasks)
        return data.mapInArrow(
            _unpacking_task(columns), ", ".join(f"`{each}` {kind}" for each, kind in columns.items())
        )

    def rows(self, name: str) -> Iterable[Any]:
        """Return rows of a table as they are now."""
        self.spark.sql(f"REFRESH TABLE {self.address.table(name)}")
        return self.spark.table(self.address.table(name)).collect()

    def counts(self) -> Mapping[str, int]:
        """Return how many rows each table has."""
        return {name: self.spark.table(self.address.table(name)).count() for name in lake_tables()}

    def _merge(self, table: LakeTable, frame: DataFrame, bounds: tuple[int, int] | None) -> int:
        target = self.address.table(table.name)
        names = [f"headwater_{table.name}_{uuid4().hex}" for _ in range(2)]
        self.spark.sql(f"REFRESH TABLE {target}")  # what others have committed
        frame.createOrReplaceTempView(names[0])
        changed = self.spark.sql(table.changed_text(target, names[0], bounds)).persist()
        try:
            count = changed.count()
            if count:
                changed.createOrReplaceTempView(names[1])
                self.spark.sql(table.merge_text(target, names[1], bounds))
        except Exception as e:
            if is_conflict(e, self._format):
                _LOG.info("somebody else has changed %s meanwhile: its rows are merged again", target)
                raise TransientError(f"others change {target} all the time: {redacted_excerpt(str(e), 300)}") from e
            raise
        finally:
            changed.unpersist()
            for each in names:
                with suppress(Exception):  # the session may be gone
                    self.spark.catalog.dropTempView(each)
        return count


def is_conflict(error: Exception, of: LakeFormat) -> bool:
    """Return whether somebody else has changed a table meanwhile, or nobody knows whether a commit was made."""
    java: Any = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    words = str(error)
    while java is not None:
        words += str(java.toString())
        java = java.getCause()
    return any(each in words for each in of.conflicts)


def tuples_of(name: str, rows: Iterable[dict[str, Any]]) -> list[Sequence[Any]]:
    """Return rows by column names as tuples in the order of a table's columns."""
    columns = list(lake_tables()[name].columns)
    return [[row[column] for column in columns] for row in rows]


def pack(name: str, values: Sequence[Sequence[Any]]) -> Iterator[tuple[str, bytearray]]:
    """Yield a table's rows in portions, as `SCHEMA` has them."""
    for start in range(0, len(values), _AT_ONCE):
        yield (
            lake_tables()[name].name,
            bytearray(pickle.dumps(values[start : start + _AT_ONCE], pickle.HIGHEST_PROTOCOL)),
        )


def _unpacking_task(columns: Mapping[str, str]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the function by which tasks make columns of the rows of one table."""

    def unpack(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415 - an executor of Spark has it

        schema = pa.schema([(column, getattr(pa, ARROW_TYPES[kind])()) for column, kind in columns.items()])
        for data in (data for batch in batches for data in batch.column(0)):
            values = zip(*pickle.loads(data.as_buffer()), strict=True)  # noqa: S301 - a task or a driver of ours packed it
            arrays = [pa.array(each, kind) for each, kind in zip(values, schema.types, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return unpack


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
