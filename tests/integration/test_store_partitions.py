"""PostgreSQL: rows of what barriers brought are kept apart by month, and none is lost or refused while that is
changed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timezone
from random import Random

import pytest
from sqlalchemy import Connection, text

from headwater.events.barriers import stream_barrier
from headwater.lineage.bulk import merge_rows
from headwater.lineage.maintenance.partitions import PARTITIONED, CreatedPartition, Month, make_partitions
from headwater.lineage.rows import Row
from headwater.lineage.rows import tables as t
from headwater.lineage.sql import store_digest
from headwater.lineage.sql.errors import StoreBusyError
from headwater.lineage.store import Store, open_store
from headwater.local import Service
from tests.kit.lineage.commit_rows import commit_row
from tests.kit.stores import own_database
from tests.kit.waiting import attempts, until

pytestmark = [pytest.mark.slow, pytest.mark.database]
NOW = datetime(2031, 12, 15, tzinfo=timezone.utc)


@pytest.fixture
def url(postgres: Service) -> Iterator[str]:
    with own_database(postgres) as url:
        yield url


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as store:
        yield store


def at(year: int, month: int, day: int = 1, millis: int = 0, n: int = 0) -> int:
    moment = datetime(year, month, day, tzinfo=timezone.utc)
    return stream_barrier(int(moment.timestamp() * 1000) + millis, n)


def commit(barrier: int, job: str = "j") -> Row:
    return commit_row(barrier, job, committed_at=7)


def edge(barrier: int, number: int) -> Row:
    key = (barrier, b"w" * 16, bytes([number] * 16))
    return Row.of(t.COMMIT_EDGE, key)


def counted(store: Store, table: str = "commits") -> dict[str, int]:
    """Rows by the partition that has them."""
    with store.engine.connect() as connection:
        rows = connection.execute(text(f"SELECT CAST(tableoid AS regclass)::text, count(*) FROM {table} GROUP BY 1"))
        return {name: number for name, number in rows}  # noqa: C416 - mypy knows no rows as pairs


def test_a_month_is_half_open() -> None:
    assert Month(2031, 12).barrier == at(2031, 12)
    assert Month(2031, 11).later(2) == Month(2032, 1)
    assert Month.of(NOW).partition_of("reads") == "reads_2031_12"


def test_a_new_store_has_this_month_and_the_next(store: Store) -> None:
    this = Month.of(datetime.now(timezone.utc))
    for table in PARTITIONED:
        with store.engine.connect() as connection:
            there = connection.execute(
                text("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = CAST(:t AS regclass)"),
                {"t": table},
            )
            assert {*there.scalars()} == {f"{table}_rest"} | {this.later(n).partition_of(table) for n in range(4)}
    store.merge([commit(this.barrier)])
    assert counted(store) == {this.partition_of("commits"): 1}


def test_what_the_rest_has_of_a_month_is_moved_to_it(store: Store) -> None:
    barriers = [-5, 0, 1, 2**63 - 1, at(1999, 12), at(2031, 11, 30, 86_399_999, 2**20 - 1), at(2031, 12), at(2032, 2)]
    store.merge(map(commit, barriers))
    assert counted(store) == {"commits_rest": 8}
    with store.engine.connect() as connection:
        before = store_digest(connection)
    made = [each for each in make_partitions(store.engine, NOW, ahead=2) if each.partition.startswith("commits")]
    assert made == [
        CreatedPartition("commits_2031_11", 1),
        CreatedPartition("commits_2031_12", 1),
        CreatedPartition("commits_2032_01", 0),
        CreatedPartition("commits_2032_02", 1),
    ]
    assert counted(store) == {"commits_rest": 5, "commits_2031_11": 1, "commits_2031_12": 1, "commits_2032_02": 1}
    with store.engine.connect() as connection:
        assert store_digest(connection) == before
    store.merge(map(commit, barriers))
    assert counted(store) == {"commits_rest": 5, "commits_2031_11": 1, "commits_2031_12": 1, "commits_2032_02": 1}
    assert make_partitions(store.engine, NOW, ahead=2) == []


def test_writers_go_on_meanwhile_and_nothing_is_lost(store: Store) -> None:
    stop, reported, faults = threading.Event(), [list[int]() for _ in range(3)], list[BaseException]()

    def write(number: int) -> None:
        random = Random(number)
        try:
            while not stop.is_set():
                rows = [
                    at(2031, random.randint(1, 12), 2, random.randrange(1000), random.randrange(1000))
                    for _ in range(20)
                ]
                with store.engine.begin() as connection:
                    merge_rows(connection, (commit(each, f"j{number}") for each in rows))
                    merge_rows(connection, (edge(each, number) for each in rows))
                reported[number] += rows
        except BaseException as e:  # noqa: BLE001 - reported below
            faults.append(e)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    try:
        until(lambda: faults or sum(map(len, reported)) > 200, "rows of writers")
        assert counted(store)["commits_rest"] > 0, "nothing is in the way, and this shows nothing"
        for _ in range(2):
            make_between_writers(store)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    make_partitions(store.engine, NOW)
    assert faults == []
    expected = sum(len({*each}) for each in reported)
    assert expected > 100
    for table in ("commits", "commit_edges"):
        counts = counted(store, table)
        assert sum(counts.values()) == expected
        assert counts.keys() == {f"{table}_2031_{month:02}" for month in range(1, 13)}


def make_between_writers(store: Store) -> None:
    """A lock that isn't granted in time is asked for again."""
    for _ in attempts("a moment for the partitions"):
        with suppress(StoreBusyError):
            make_partitions(store.engine, NOW)
            return


def test_somebody_who_holds_the_rest_is_waited_for_a_moment(store: Store, url: str) -> None:
    store.merge([commit(at(2031, 11))])
    with store.engine.begin() as holder:
        holder.execute(text("SELECT count(*) FROM commits"))
        with pytest.raises(StoreBusyError):
            make_partitions(store.engine, NOW)
        open_store(url).close()
    assert make_partitions(store.engine, NOW)[0] == CreatedPartition("commits_2031_11", 1)


def test_a_question_with_a_barrier_looks_at_its_month_only(store: Store) -> None:
    make_partitions(store.engine, NOW)
    barrier = at(2031, 12, 3)
    store.merge([commit(barrier)])
    with store.engine.connect() as connection:
        assert scanned(connection, f"SELECT * FROM commits WHERE barrier = {barrier}") == {"commits_2031_12"}
        joined = "SELECT 1 FROM writes w JOIN commits c ON w.commit_id = c.id AND w.barrier = c.barrier"
        assert scanned(connection, f"{joined} WHERE w.barrier = {barrier}") == {"commits_2031_12", "writes_2031_12"}


def scanned(connection: Connection, query: str) -> set[str]:
    def walk(node: dict[str, object]) -> Iterator[str]:
        if "Relation Name" in node:
            yield str(node["Relation Name"])
        for each in node.get("Plans", []):  # type: ignore[attr-defined]
            yield from walk(each)

    (plan,) = connection.execute(text(f"EXPLAIN (FORMAT JSON) {query}")).scalar_one()
    return {*walk(plan["Plan"])}
