"""PostgreSQL's monthly partitions of commits, reads, writes and edges: old rows can be dropped quickly, and indexes
stay small.

A barrier is milliseconds << 20, plus a counter. Each table has a default partition for small and very large barriers
and for months without a partition, so no row is ever refused. Creating a partition moves the rows of its month out of
the default partition in one transaction, while writers go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from typing import Final, NamedTuple

from sqlalchemy import Connection, Engine, text

from headwater.errors import HeadwaterError
from headwater.lineage.rows import KINDS
from headwater.lineage.sql.errors import translate_errors
from headwater.lineage.sql.locking import exclusive_transaction
from headwater.lineage.sql.tables import default_partition

AHEAD: Final = 3
"""How many months ahead partitions are created."""
PARTITIONED: Final = tuple(kind.name for kind in KINDS if kind.partition is not None)

_SECOND: Final = 1000 << 20
_THERE: Final = """
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = ANY(CAST(:tables AS regclass[]))
"""
_IN_REST: Final = """
SELECT DISTINCT date_trunc('month', to_timestamp(barrier / {second}) AT TIME ZONE 'UTC') FROM {rest}
WHERE barrier >= :low AND barrier < :high
"""


class Month(NamedTuple):
    year: int
    month: int

    @classmethod
    def of(cls, moment: datetime) -> Month:
        utc = moment.astimezone(timezone.utc)
        return cls(utc.year, utc.month)

    def later(self, months: int) -> Month:
        number = self.year * 12 + self.month - 1 + months
        return Month(number // 12, number % 12 + 1)

    @property
    def barrier(self) -> int:
        """The least barrier of the month."""
        return int(datetime(self.year, self.month, 1, tzinfo=timezone.utc).timestamp()) * _SECOND

    def partition_of(self, table: str) -> str:
        return f"{table}_{self.year:04}_{self.month:02}"


class CreatedPartition(NamedTuple):
    """A new partition, and how many rows were moved into it."""

    partition: str
    moved: int


_EARLIEST: Final = Month(2000, 1)
"""Earlier barriers aren't times."""


def make_partitions(engine: Engine, now: datetime | None = None, *, ahead: int = AHEAD) -> list[CreatedPartition]:
    """Create the partitions of this month, the next months, and each month that has rows in the default partition.

    Each is a transaction of its own, so writers wait only for a moment. Raises StoreBusyError if a lock isn't granted
    in time; partitions created until then stay.
    """
    if engine.dialect.name != "postgresql":
        return []
    coming = months_from(now, ahead)
    with translate_errors():
        return [created for table in PARTITIONED for created in _of_table(engine, table, coming)]


def drop_empty_partitions(engine: Engine, before: datetime) -> list[str]:
    """Drop the partitions of months that ended before this time and have no rows left. What comes late goes into the
    default partition."""
    if engine.dialect.name != "postgresql":
        return []
    first, dropped = Month.of(before), list[str]()
    with translate_errors():
        for table in PARTITIONED:
            with engine.connect() as connection:
                there = sorted(_there(connection, table) - {default_partition(table)})
            dropped += [
                partition
                for partition in there
                if partition < first.partition_of(table) and _drop_if_empty(engine, table, partition)
            ]
    return dropped


def _drop_if_empty(engine: Engine, table: str, partition: str) -> bool:
    is_used = text(f"SELECT EXISTS (SELECT 1 FROM {partition})")  # noqa: S608 - a name of ours
    with engine.connect() as connection:
        if connection.execute(is_used).scalar():
            return False
    with exclusive_transaction(engine) as connection:
        connection.exec_driver_sql(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        if connection.execute(is_used).scalar():
            return False
        connection.exec_driver_sql(f"DROP TABLE {partition}")
    return True


def refresh_statistics(engine: Engine) -> None:
    """Refresh the statistics of partitioned tables as a whole, by which joins are planned. Autovacuum refreshes those
    of single partitions only. A user who doesn't own the tables changes nothing."""
    if engine.dialect.name != "postgresql":
        return
    with translate_errors(), engine.begin() as connection:
        connection.exec_driver_sql(f"ANALYZE {', '.join(PARTITIONED)}")


def make_ahead(engine: Engine) -> None:
    """Create missing partitions when a store is opened. Errors are ignored: the default partition takes the rows."""
    if engine.dialect.name != "postgresql":
        return
    wanted = {month.partition_of(table) for month in months_from(None, 1) for table in PARTITIONED}
    with suppress(HeadwaterError):
        with translate_errors(), engine.connect() as connection:
            is_missing = not wanted <= _there(connection, *PARTITIONED)
        if is_missing:
            make_partitions(engine)


def make_first(connection: Connection) -> None:
    """Create the partitions of a new store."""
    for table in PARTITIONED:
        for month in months_from(None, AHEAD):
            _make(connection, table, month)


def months_from(now: datetime | None, ahead: int) -> list[Month]:
    this = Month.of(now or datetime.now(timezone.utc))
    return [this.later(number) for number in range(ahead + 1)]


def _of_table(engine: Engine, table: str, coming: Sequence[Month]) -> Iterator[CreatedPartition]:
    with engine.connect() as connection:
        there = _there(connection, table)
        months = {*coming, *_in_rest(connection, table, coming[-1])}
    for month in sorted(months):
        if month.partition_of(table) not in there:
            with exclusive_transaction(engine) as connection:
                created = _make(connection, table, month)
            if created is not None:
                yield created


def _there(connection: Connection, *tables: str) -> set[str]:
    return {*connection.execute(text(_THERE), {"tables": list(tables)}).scalars()}


def _in_rest(connection: Connection, table: str, last: Month) -> set[Month]:
    """Return the months that have rows in the default partition."""
    bounds = {"low": _EARLIEST.barrier, "high": last.later(1).barrier}
    query = text(_IN_REST.format(rest=default_partition(table), second=_SECOND))
    return {Month(moment.year, moment.month) for moment in connection.execute(query, bounds).scalars()}


def _make(connection: Connection, table: str, month: Month) -> CreatedPartition | None:
    """Create a partition, move rows into it, then attach it. Writers are locked out first: one that has already chosen
    the default partition for a row would be refused."""
    partition, rest = month.partition_of(table), default_partition(table)
    low, high = month.barrier, month.later(1).barrier
    if partition in _there(connection, table):
        return None  # another one was quicker
    run = connection.exec_driver_sql
    run(f"LOCK TABLE ONLY {table} IN SHARE ROW EXCLUSIVE MODE")
    run(f"CREATE TABLE {partition} (LIKE {table} INCLUDING ALL)")
    run(f"LOCK TABLE {rest} IN ACCESS EXCLUSIVE MODE")
    moved = run(
        f"WITH moved AS (DELETE FROM {rest} WHERE barrier >= {low} AND barrier < {high} RETURNING *) "  # noqa: S608
        f"INSERT INTO {partition} SELECT * FROM moved"
    ).rowcount
    run(f"ALTER TABLE {table} ATTACH PARTITION {partition} FOR VALUES FROM ({low}) TO ({high})")
    return CreatedPartition(partition, moved)
