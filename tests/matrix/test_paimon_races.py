"""Several threads of two applications commit to the same tables: each tells its own snapshots, and those it read.

One of them has hooks, the other one has not. Truth is in Paimon: the rows that each snapshot added, by reading what
came between it and the one before."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kit.formats.paimon_writers import write
from tests.kit.spark.driver import PAIMON, Driver, shared_driver_fixture

ROOT: Final = Path(__file__).parents[2]
FIRST, FIRST_FOR_LONG, SECOND = 100_000, 500_000, 900_000
pytestmark = [pytest.mark.xdist_group("spark-paimon"), pytest.mark.needs("paimon")]


driver = shared_driver_fixture(PAIMON)


@contextmanager
def another(java_home: Path, driver: Driver, database: str, threads: int, commits: int) -> Generator[Any, None, None]:
    """Another application, without hooks; what it reported is in the list when the block has ended."""
    events: list[Any] = []
    numbers = [str(each) for each in (SECOND, threads, commits)]
    command = [
        sys.executable,
        "-m",
        "tests.kit.formats.paimon_writers",
        str(java_home),
        f"{driver.warehouse}/pai",
        database,
    ]
    with subprocess.Popen(
        [*command, *numbers], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        try:
            assert _next(process.stdout, "ready")
            process.stdin.write("go\n")
            process.stdin.flush()
            yield events
            events.append(json.loads(_next(process.stdout, "{")))
        finally:
            if not events:
                process.kill()
            process.wait(60)


def _next(lines: Any, start: str) -> str:
    """The next line that begins so: Ivy prints there as well."""
    for line in lines:
        if line.startswith(start):
            return str(line)
    raise AssertionError(f"the other application ended before it said {start}")


def _check(driver: Driver, java_home: Path, first: int, threads: int, commits: int) -> None:
    database = driver.database("pai")
    driver.run(f"CREATE TABLE pai.{database}.s (v BIGINT)", f"CREATE TABLE pai.{database}.t (v BIGINT, n BIGINT)")
    with another(java_home, driver, database, threads, commits) as others:
        events = write(driver, database, first, threads, commits)
    reported_by_all = [events, *others]
    assert [each.pop("gaps") for each in reported_by_all] == [[], []]
    found = {job: commits for each in reported_by_all for job, commits in each.items()}
    assert len(found) == 2 * 2 * threads * commits
    truth = _truth(driver, database)
    for job in sorted(found.keys() - truth.keys()):
        assert _is_overwritten(found.pop(job), job[0], truth), f"{job} told a snapshot that it never made"
    assert found == truth


def _is_overwritten(told: list[list[list[int]]], table: str, truth: dict[str, list[list[list[int]]]]) -> bool:
    """Whether Paimon itself lost a commit that it had reported as done: its rows are in no snapshot at all, and another
    one has its number. On a local disk Paimon looks whether a snapshot's file is there, and then renames its own to it;
    two processes can do so at once."""
    return [numbers for numbers, _ in told] in [
        [numbers for numbers, _ in commits] for job, commits in truth.items() if job[0] == table
    ]


def _truth(driver: Driver, database: str) -> dict[str, list[list[list[int]]]]:
    """By job, what it committed and what it read: the number of rows in `s` is the number of its snapshot."""
    truth: dict[str, list[list[list[int]]]] = {}
    for table in "st":
        name = f"pai.{database}.{table}"
        for number in range(1, _newest(driver, name) + 1):
            (row,) = (
                driver.spark.read.options(**{"incremental-between": f"{number - 1},{number}"}).table(name).collect()
            )
            truth.setdefault(f"{table}{row.v}", []).append([[number], [row.n] if table == "t" else []])
    return truth


def _newest(driver: Driver, name: str) -> int:
    table, _, last = name.rpartition(".")
    ((newest,),) = driver.rows(f"SELECT max(snapshot_id) FROM {table}.`{last}$snapshots`")
    return int(newest)


@pytest.mark.long
def test_each_tells_its_own(driver: Driver, java_home: Path) -> None:
    _check(driver, java_home, FIRST, threads=4, commits=2)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_each_tells_its_own_for_long(driver: Driver, java_home: Path) -> None:
    _check(driver, java_home, FIRST_FOR_LONG, threads=4, commits=20)
