"""Rows into a store, against COPY and a merge in SQL written by hand: python -m tests.benchmarks.store_merge

All in one run and in turns, on one machine: the database, and what times it. Both ways write the same rows, those of
commits with three inputs and an output (reads, commits, writes, and what is reported again), into the same tables with
the same indexes, in the same transactions.

- bare: what a person would write who knows PostgreSQL. The rows are tuples already, of different keys and in order;
  each kind is copied in binary to a temporary table that is there, and merged by a statement written here.
- ours: `bulk.merge_rows`, which takes rows as the law tells them: it collapses them by key, orders and packs them.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Engine, text

from headwater import local
from headwater.lineage.api import DataLineage, TableLineage
from headwater.lineage.bulk import WriteBatch, pack_rows
from headwater.lineage.mapping import map_event
from headwater.lineage.meta import DatabaseLineageMeta
from headwater.lineage.rows import KINDS, Precedence, Row, merge_by_key
from headwater.lineage.rows.model import RowTuple
from headwater.lineage.sql import store_digest
from headwater.lineage.store import Store, open_store
from headwater.testing.examples import COMMITTED
from tests.benchmarks.harness import Aims

EVENTS: Final = 2_000
"""In a transaction: ten thousand rows."""
BATCHES: Final = 5
ROUNDS: Final = 5
CALLS: Final = 300
AIM: Final = 0.8

_LEAST: Final = ("{c} = least({t}.{c}, excluded.{c})", "excluded.{c} < {t}.{c}")
_GREATEST: Final = (
    "{c} = greatest({t}.{c}, excluded.{c})",
    "excluded.{c} > {t}.{c} OR {t}.{c} IS NULL AND excluded.{c} IS NOT NULL",
)
_NEWER: Final = "excluded.{s} > {t}.{s}"
_OLDER: Final = "length(excluded.{s}) > 0 AND (length({t}.{s}) = 0 OR excluded.{s} < {t}.{s})"


class Bare:
    """By hand."""

    def __init__(self, engine: Engine) -> None:
        self._connection: Any = engine.raw_connection()
        self._driver: Any = self._connection.driver_connection
        self._columns: dict[str, list[tuple[str, str]]] = {}

    def close(self) -> None:
        self._connection.close()

    def prepare(self, batches: Sequence[dict[str, list[RowTuple]]]) -> None:
        for name in sorted({name for batch in batches for name in batch}):
            with self._driver.cursor() as cursor:
                cursor.execute(f"CREATE TEMP TABLE IF NOT EXISTS bare_{name} (LIKE {name}) ON COMMIT DELETE ROWS")
                cursor.execute(
                    "SELECT a.attname, t.typname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
                    "WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 ORDER BY a.attnum",
                    (name,),
                )
                self._columns[name] = cursor.fetchall()
        self._driver.commit()

    def merge(self, batch: dict[str, list[RowTuple]]) -> None:
        with self._driver.cursor() as cursor:
            for name, rows in batch.items():
                with cursor.copy(f"COPY bare_{name} FROM STDIN (FORMAT BINARY)") as copy:
                    copy.set_types([kind for _, kind in self._columns[name]])
                    for row in rows:
                        copy.write_row(row)
                cursor.execute(self._statement(name))
        self._driver.commit()

    def _statement(self, name: str) -> str:
        columns = [column for column, _ in self._columns[name]]
        names = ", ".join(columns)
        kind = next(each for each in KINDS if each.name == name)
        key = ", ".join(kind.primary_key)
        insert = f"INSERT INTO {name} SELECT {names} FROM bare_{name} ORDER BY {key} ON CONFLICT ({key}) DO"
        if not kind.has_times and not kind.groups and not kind.has_bits:
            return f"{insert} NOTHING"
        changes_, news = list[str](), list[str]()
        for column in (*kind.time_columns, *(each.name for each in kind.maxima)):
            change, is_news = _LEAST if column == "first" else _GREATEST
            changes_.append(change.format(t=name, c=column))
            news.append(is_news.format(t=name, c=column))
        for group in kind.groups:
            stamp = f"{group.name}_stamp"
            emitted = (*(each.name for each in group.columns), stamp)
            wins = (_NEWER if group.precedence is Precedence.NEWEST else _OLDER).format(t=name, s=stamp)
            changes_ += [f"{each} = CASE WHEN {wins} THEN excluded.{each} ELSE {name}.{each} END" for each in emitted]
            news.append(wins)
        if kind.has_bits:
            changes_.append(f"bits = {name}.bits | excluded.bits")
            news.append(f"{name}.bits | excluded.bits <> {name}.bits")
        return f"{insert} UPDATE SET {', '.join(changes_)} WHERE {' OR '.join(news)}"


def batches() -> list[list[Row]]:
    """As the law tells them, each key once: what is reported again within a batch is the law's matter."""
    found = []
    for number in range(BATCHES):
        emitted = (row for n in range(EVENTS) for row in map_event(_event(number * EVENTS + n + 1)))
        found.append(list(merge_by_key(emitted).values()))
    return found


def _event(number: int) -> Any:
    numbers = {"sequence": number, "family_sequence": number, "barrier": COMMITTED.barrier + number}
    return COMMITTED.model_copy(update=numbers)


def timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def emptied(store: Store) -> None:
    with store.engine.begin() as connection:
        names = connection.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'headwater'")).scalars()
        data = [
            name for name in names if name not in {"alembic_version", "headwater_version"} and "version" not in name
        ]
        connection.execute(text(f"TRUNCATE {', '.join(data)}"))


def postgres(aims: Aims) -> None:
    emitted = batches()
    packed = [{each.name: each.rows for each in pack_rows(rows)} for rows in emitted]
    number = sum(map(len, emitted))
    with local.postgres(durable=True) as server, open_store(server.address) as store:
        bare = Bare(store.engine)
        bare.prepare(packed)

        def ours() -> None:
            for rows in emitted:
                store.bulk.merge(WriteBatch(rows))

        def by_hand() -> None:
            for batch in packed:
                bare.merge(batch)

        _check_that_both_end_in_the_same(store, ours, by_hand)
        ratios: dict[str, list[tuple[float, float]]] = {"new rows": [], "all duplicates": []}
        for turn in range(ROUNDS + 1):
            first = []
            again = []
            for way in (ours, by_hand) if turn % 2 else (by_hand, ours):
                emptied(store)
                first.append((way, timed(way)))
                again.append((way, timed(way)))
            if turn:
                for name, found in (("new rows", first), ("all duplicates", again)):
                    seconds = dict(found)
                    ratios[name].append((seconds[ours], seconds[by_hand]))
        bare.close()
        _say(f"PostgreSQL, {number:,} rows of {BATCHES * EVENTS:,} commits, {number // BATCHES:,} in a transaction")
        for name, pairs in ratios.items():
            mine, other = (statistics.median(each) for each in zip(*pairs, strict=True))
            ratio = statistics.median(b / a for a, b in pairs)
            rates = f"{number / mine:>10,.0f} rows/s{number / other:>12,.0f} by hand{ratio:>8.2f}"
            _say(f"  {name:<24}{rates}")
            aims.at_least(f"PostgreSQL, {name}, of the rate by hand", ratio, AIM)
        calls(store)


def _check_that_both_end_in_the_same(store: Store, *ways: Callable[[], object]) -> None:
    digests = set()
    for way in ways:
        emptied(store)
        way()
        with store.engine.connect() as connection:
            digests.add(store_digest(connection))
    if len(digests) != 1:
        raise SystemExit("the two ways don't end in the same rows: their times mean nothing")


def others(name: str, url: str) -> None:
    """For information."""
    emitted = batches()
    number = sum(map(len, emitted))
    with open_store(url) as store:
        for what in ("new rows", "all duplicates"):
            took = timed(lambda: [store.bulk.merge(WriteBatch(rows)) for rows in emitted])
            _say(f"{name}  {what:<24}{number / took:>10,.0f} rows/s")
        calls(store)


def calls(store: Store) -> None:
    """The store's own interface, one call after the other."""
    meta = DatabaseLineageMeta(store.engine)
    now = datetime.now(timezone.utc)
    ways: dict[str, Callable[[int], object]] = {
        "store_sink_table_lineage": lambda n: meta.store_sink_table_lineage(
            TableLineage(job=f"job-{n % 10}", database="db", table=f"t{n}", create_time=now)
        ),
        "store_sink_data_lineage": lambda n: meta.store_sink_data_lineage(
            DataLineage(job=f"job-{n % 10}", database="db", table="t", create_time=now, barrier_id=n, snapshot_id=n)
        ),
    }
    for name, way in ways.items():
        took = timed(lambda way=way: [way(n) for n in range(CALLS)])  # type: ignore[misc]
        _say(f"  {name:<32}{CALLS / took:>8,.0f} calls/s")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Print the rates; 1 if an aim is missed."""
    aims = Aims()
    postgres(aims)
    with tempfile.TemporaryDirectory() as scratch:
        others("SQLite", f"sqlite:///{Path(scratch, 'store.db')}")
    with local.mariadb(durable=True) as server:
        others("MariaDB", server.address)
    return aims.report()


if __name__ == "__main__":
    sys.exit(main())
