"""Threads that write to one table of Hudi's and to tables of their own at once, and what really became of it.

Each row holds its number and its table's count of what it read; Hudi writes into each row which instant made it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from headwater.events import Committed, Gap
from tests.kit.formats.hudi_place import Place
from tests.kit.spark.driver import of
from tests.kit.threads import in_threads

WRITERS: Final = 2
_NAME: Final = "spark.headwater.job.name"
_TOGETHER: Final = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
}
_COLUMNS: Final = "(id INT, n LONG, p STRING) USING hudi PARTITIONED BY (p) TBLPROPERTIES (primaryKey = 'id')"


@dataclass(frozen=True)
class CommitReport:
    """Of one statement, by its job."""

    made: tuple[int | None, ...]
    read: tuple[tuple[int | None, tuple[int, ...]], ...]
    """Each snapshot, or the candidates."""


def make_tables(place: Place) -> None:
    """`r` that all write, and `own0`, `own1` … that one writes each."""
    tables = ("r", *(f"own{n}" for n in range(WRITERS)))
    place.run(*(f"CREATE TABLE {{db}}.{table} {_COLUMNS}" for table in tables))
    place.run("INSERT INTO {db}.r VALUES (0, 0, 'first')")


def race(place: Place, rounds: int) -> dict[str, CommitReport]:
    place.events_of()
    before = len(place.driver.bus.events)
    in_threads(WRITERS, lambda writer: _write(place, writer, rounds))
    place.events_of()
    events = place.driver.bus.events[before:]
    exact = {"the table was refreshed meanwhile"}
    assert not [gap for gap in of(Gap, events) if not any(word in gap.detail for word in exact)]
    return {c.job.name: _report_of(c) for c in of(Committed, events) if c.job is not None}


def _write(place: Place, writer: int, rounds: int) -> None:
    session: Any = place.driver.spark.newSession()
    for key, text in _TOGETHER.items():
        session.conf.set(key, text)
    for turn in range(rounds):
        number = (writer + 1) * 1_000 + turn
        session.conf.set(_NAME, f"r{number}")
        session.sql(f"INSERT INTO {place.db}.r VALUES ({number}, 0, 'p{writer}')")
        session.conf.set(_NAME, f"own{number}")
        session.sql(f"INSERT INTO {place.db}.own{writer} SELECT {number}, count(*), 'x' FROM {place.db}.r")


def _report_of(committed: Committed) -> CommitReport:
    read = tuple((each.snapshot, each.candidates) for each in committed.inputs)
    return CommitReport(tuple(each.snapshot for each in committed.outputs), read)


def wrongs(place: Place, captured: dict[str, CommitReport]) -> list[str]:
    """Where what was reported isn't what the rows and timelines say."""
    found = []
    rows = _rows(place, "r")
    for number, (instant, _) in rows.items():
        if number and captured[f"r{number}"].made != (instant,):
            found.append(f"r{number} was made by {instant}: {captured[f'r{number}']}")
    sizes = _sizes(place, [instant for instant, _ in rows.values()])
    for writer in range(WRITERS):
        for number, (instant, count) in _rows(place, f"own{writer}").items():
            own = captured[f"own{number}"]
            states = [size for snapshot, several in own.read for size in _of(sizes, snapshot, several)]
            if own.made != (instant,) or count not in states:
                found.append(f"own{number} was made by {instant} of {count} rows: {own}")
    return found


def _of(sizes: dict[int, int], snapshot: int | None, candidates: tuple[int, ...]) -> list[int]:
    return [sizes[each] for each in ((snapshot,) if snapshot is not None else candidates)]


def _rows(place: Place, table: str) -> dict[int, tuple[int, int]]:
    """By a row's number: the instant that made it, and how many rows it was made of."""
    place.driver.spark.catalog.refreshTable(f"{place.db}.{table}")
    found = place.driver.rows(f"SELECT id, _hoodie_commit_time, n FROM {place.db}.{table}")
    return {row[0]: (int(row[1]), row[2]) for row in found}


def _sizes(place: Place, instants: list[int]) -> dict[int, int]:
    """How many rows the table had at each state: states follow each other as instants were completed."""
    sizes, size = {}, 0
    for done in place.commits("r"):
        size += instants.count(done.number)
        sizes[done.number] = size
    return sizes
