"""PostgreSQL: rows of what barriers told are kept apart by month, so that old ones go quickly and new ones are found in
small indexes.

A barrier is milliseconds << 20 and a number. Each table has a partition for the rest, which takes small numbers, far
ones, and whatever comes for a month that has none yet; nothing is ever refused for want of a partition. Making one
moves what the rest has of its month, in one transaction, beside those who write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from typing import Final, NamedTuple

from sqlalchemy import Connection, Engine, text

from headwater.errors import HeadwaterError
from headwater.lineage.rows import KINDS
from headwater.lineage.sql.tables import rest_of
from headwater.lineage.sql.troubles import troubles
from headwater.lineage.store.locking import alone

AHEAD: Final = 3
"""How many months are made before they come."""
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
        """The least that a job can have in it."""
        return int(datetime(self.year, self.month, 1, tzinfo=timezone.utc).timestamp()) * _SECOND

    def partition_of(self, table: str) -> str:
        return f"{table}_{self.year:04}_{self.month:02}"


class Made(NamedTuple):
    """A partition that was made, and how many rows were in the rest until then."""

    partition: str
    moved: int


_EARLIEST: Final = Month(2000, 1)
"""What is said to be older than that is a number that somebody made up."""


def make_partitions(engine: Engine, now: datetime | None = None, *, ahead: int = AHEAD) -> list[Made]:
    """Those of this month and the next ones, and of every month of which the rest has rows. Each is a transaction of
    its own, so that writers wait for one table and a moment. Raises StoreBusyError where somebody holds a table for
    longer: what was made until then stays, and the next time does the rest."""
    if engine.dialect.name != "postgresql":
        return []
    coming = months_from(now, ahead)
    with troubles():
        return [made for table in PARTITIONED for made in _of_table(engine, table, coming)]


def make_ahead(engine: Engine) -> None:
    """At opening: whoever may does it, and nobody is kept from working by it. The rest takes what has no partition."""
    if engine.dialect.name != "postgresql":
        return
    wanted = {month.partition_of(table) for month in months_from(None, 1) for table in PARTITIONED}
    with suppress(HeadwaterError):
        with troubles(), engine.connect() as connection:
            is_missing = not wanted <= _there(connection, *PARTITIONED)
        if is_missing:
            make_partitions(engine)


def make_first(connection: Connection) -> None:
    """Of a store that is just being made."""
    for table in PARTITIONED:
        for month in months_from(None, AHEAD):
            _make(connection, table, month)


def months_from(now: datetime | None, ahead: int) -> list[Month]:
    this = Month.of(now or datetime.now(timezone.utc))
    return [this.later(number) for number in range(ahead + 1)]


def _of_table(engine: Engine, table: str, coming: Sequence[Month]) -> Iterator[Made]:
    with engine.connect() as connection:
        there = _there(connection, table)
        months = {*coming, *_in_rest(connection, table, coming[-1])}
    for month in sorted(months):
        if month.partition_of(table) not in there:
            with alone(engine) as connection:
                made = _make(connection, table, month)
            if made is not None:
                yield made


def _there(connection: Connection, *tables: str) -> set[str]:
    return {*connection.execute(text(_THERE), {"tables": list(tables)}).scalars()}


def _in_rest(connection: Connection, table: str, last: Month) -> set[Month]:
    """The months of which the rest has rows."""
    bounds = {"low": _EARLIEST.barrier, "high": last.later(1).barrier}
    asked = text(_IN_REST.format(rest=rest_of(table), second=_SECOND))
    return {Month(moment.year, moment.month) for moment in connection.execute(asked, bounds).scalars()}


def _make(connection: Connection, table: str, month: Month) -> Made | None:
    """Filled before it is attached, while writers of the table wait before they begin: one that has chosen the rest for
    a row already, and waits for it, would be refused when it gets there."""
    partition, rest = month.partition_of(table), rest_of(table)
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
    return Made(partition, moved)
