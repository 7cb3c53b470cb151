"""Removes old records of runs: what grows with every run, and isn't data lineage.

What an answer about the present needs stays, however old: the newest run of each job, the newest run that read or wrote
each table in each job, and producers of which an event is missing. The age has to be more than what a bus keeps: an old
event that comes again would bring a part of its run's rows back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Engine, and_, delete, exists, func, or_, select

from headwater.errors import ConfigurationError
from headwater.events.clock import wall_micros
from headwater.lineage.bulk.transactions import Transactions
from headwater.lineage.rows import KINDS, RowKind
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import table_of

AT_ONCE: Final = 1_000
"""How many runs, rows or producers one transaction takes."""
LEAST_DAYS: Final = 7
_DAY_MICROS: Final = 86_400_000_000
_EXPIRED: Final = "lineage expire, then store purge"
_OLD: Final = "store purge --older-than"
_STAYS: Final = "nothing: it grows with tables and jobs"
_WRITER: Final = "the writer, after 30 days"
REMOVED_BY: Final[Mapping[str, str]] = {
    **dict.fromkeys((kind.name for kind in KINDS), _STAYS),
    **dict.fromkeys((kind.name for kind in (t.COMMIT, t.READ, t.WRITE, t.COMMIT_EDGE)), _EXPIRED),
    **dict.fromkeys((kind.name for kind in (t.RUN, t.RUN_START, t.TABLE_LINEAGE)), _OLD),
    **dict.fromkeys((kind.name for kind in (t.PRODUCER, t.ARRIVAL, t.FAILED_STATEMENT)), _OLD),
    **dict.fromkeys(("writer_instants", "writer_marks"), _WRITER),
    "dead_letters": "dead-letter drop, dead-letter retry",
}
"""What removes rows of each table."""


def remove_old(engine: Engine, before: int, *, at_once: int = AT_ONCE) -> dict[str, int]:
    """Remove old records in several transactions. Return how many rows of each table are gone. `before` is in
    microseconds."""
    check_age(before)
    transactions, total = Transactions(engine), Counter[str]()
    for find, remove in _STEPS:
        old = find(before).subquery()
        portion: list[bytes] | None = None
        while portion is None or len(portion) == at_once:
            after = portion[-1] if portion else b""
            query = select(old.c.id).where(old.c.id > after).order_by(old.c.id).limit(at_once)
            (portion, gone), _ = transactions.run(partial(_remove_portion, query=query, remove=remove))
            total.update(gone)
    return {name: number for name, number in total.items() if number}


def count_old(engine: Engine, before: int) -> int:
    """Return how many runs, accesses to tables, failed statements and producers are old."""
    check_age(before)
    with engine.connect() as connection:
        return sum(
            connection.scalar(select(func.count()).select_from(find(before).subquery())) or 0 for find, _ in _STEPS
        )


def check_age(before: int) -> None:
    """Refuse an age at which a bus may still deliver events again."""
    if before > wall_micros() - LEAST_DAYS * _DAY_MICROS:
        raise ConfigurationError(
            f"records of runs are kept for {LEAST_DAYS} days at least, and longer than the bus keeps its events"
        )


def _remove_portion(connection: Connection, query: Any, remove: Remover) -> tuple[list[bytes], Counter[str]]:
    found = [bytes(key) for key in connection.scalars(query)]
    gone = Counter[str]()
    for start in range(0, len(found), 500):
        gone.update(dict(remove(connection, found[start : start + 500])))
    return found, gone


Finder = Callable[[int], Any]
"""Returns a query for the ids of what is old."""
Remover = Callable[[Connection, Sequence[bytes]], "Iterator[tuple[str, int]]"]
"""Removes these, and yields how many rows of each table are gone."""


def _old_runs(before: int) -> Any:
    """Runs that a newer run of their job follows, and of which nobody is alive."""
    run, newer, producer = table_of(t.RUN), table_of(t.RUN).alias(), table_of(t.PRODUCER)
    is_followed = exists().where(
        newer.c.job == run.c.job, newer.c.job_namespace == run.c.job_namespace, newer.c.last > run.c.last
    )
    is_alive = exists().where(producer.c.run == run.c.run, producer.c.last >= before)
    return select(run.c.run.label("id")).where(run.c.last < before, or_(run.c.job.is_(None), is_followed), ~is_alive)


def _remove_runs(connection: Connection, runs: Sequence[bytes]) -> Iterator[tuple[str, int]]:
    for kind in (t.RUN_START, t.RUN):
        yield kind.name, _delete(connection, kind, table_of(kind).c.run.in_(runs))


def _old_accesses(before: int) -> Any:
    """Accesses of a job to a table that it made again in a later run."""
    row, newer = table_of(t.TABLE_LINEAGE), table_of(t.TABLE_LINEAGE).alias()
    same = ("dataset", "job", "job_namespace", "catalog", "database_name", "table_name")
    is_followed = exists().where(
        newer.c.side == row.c.side, newer.c.last > row.c.last, *(_equal(newer.c[name], row.c[name]) for name in same)
    )
    return select(row.c.id).where(row.c.last < before, is_followed)


def _old_failures(before: int) -> Any:
    row = table_of(t.FAILED_STATEMENT).c
    return select(row.id).where(row.time < before)


def _old_producers(before: int) -> Any:
    """Producers that ended in order. The newest stays: it says up to when the store is complete."""
    row, any_of = table_of(t.PRODUCER).c, table_of(t.PRODUCER).alias()
    newest = select(func.max(any_of.c.last)).scalar_subquery()
    has_ended = and_(row.closed_at.is_not(None), row.complete == 1)
    return select(row.producer.label("id")).where(has_ended, row.last < before, row.last < newest)


def _remove_producers(connection: Connection, producers: Sequence[bytes]) -> Iterator[tuple[str, int]]:
    """Remove producers whose events are all there, with what says so. Where one is missing, that has to be known."""
    row, arrival = table_of(t.PRODUCER).c, table_of(t.ARRIVAL).c
    numbers = connection.execute(select(row.producer, row.sequence).where(row.producer.in_(producers)))
    emitted = {bytes(producer): number for producer, number in numbers}
    arrived: dict[bytes, int] = {}
    for producer, bits in select_by_keys(
        connection, select(arrival.producer, arrival.bits), arrival.producer, producers
    ):
        arrived[bytes(producer)] = arrived.get(bytes(producer), 0) + int(bits).bit_count()
    whole = [key for key, number in emitted.items() if arrived.get(key) == number]
    for kind in (t.ARRIVAL, t.PRODUCER):
        yield kind.name, _delete(connection, kind, table_of(kind).c.producer.in_(whole))


def _remover(kind: RowKind) -> Remover:
    def remove(connection: Connection, ids: Sequence[bytes]) -> Iterator[tuple[str, int]]:
        yield kind.name, _delete(connection, kind, table_of(kind).c.id.in_(ids))

    return remove


def _delete(connection: Connection, kind: RowKind, which: ColumnElement[bool]) -> int:
    return connection.execute(delete(table_of(kind)).where(which)).rowcount


def _equal(one: Any, other: Any) -> ColumnElement[bool]:
    return or_(one == other, and_(one.is_(None), other.is_(None)))


_STEPS: Final[tuple[tuple[Finder, Remover], ...]] = (
    (_old_runs, _remove_runs),
    (_old_accesses, _remover(t.TABLE_LINEAGE)),
    (_old_failures, _remover(t.FAILED_STATEMENT)),
    (_old_producers, _remove_producers),
)
