"""Threads of one application that write to shared tables, each distinguished by the job name that its session has.

Run as a program it is the second application: `python -m tests.kit.formats.paimon_writers <java home> <warehouse>
<database> <first value> <threads> <commits>`. It has no hooks, and prints a JSON object: what was reported, by job.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from headwater.events import Committed, Gap
from tests.kit.spark.driver import PAIMON, Driver, Extensions, driver_with, of
from tests.kit.threads import in_threads

NAME: Final = "spark.headwater.job.name"


def at(warehouse: str) -> Extensions:
    """Paimon over a warehouse that others write to as well."""
    return replace(PAIMON, conf={**PAIMON.conf, "spark.sql.catalog.pai.warehouse": f"file:{warehouse}"})


def write(driver: Driver, database: str, first: int, threads: int, commits: int) -> dict[str, list[list[Any]]]:
    """Each commit adds its value to `t`, and how many rows `s` had for it: `s` gets one row with each of its commits.
    What was reported, by the job of each value: `[[output snapshots], [what was read of s], gaps]`."""
    in_threads(threads, lambda number: _commits(driver, database, first + number * 10_000, commits))
    assert driver.capture.drain(60), "capture didn't come to an end"
    assert not driver.bus.faults, driver.bus.faults
    return _reported(driver, range(first, first + threads * 10_000))


def _commits(driver: Driver, database: str, first: int, commits: int) -> None:
    session: Any = driver.spark.newSession()
    for value in range(first, first + commits):
        session.conf.set(NAME, f"s{value}")
        _again(session, f"INSERT INTO pai.{database}.s VALUES ({value})")
        session.conf.set(NAME, f"t{value}")
        _again(session, f"INSERT INTO pai.{database}.t SELECT {value}, count(*) FROM pai.{database}.s")


def _again(session: Any, statement: str, left: int = 20) -> None:
    """On a local disk, Paimon sometimes looks for a snapshot that another process is just giving its name, and fails
    before it commits: then a user tries again."""
    try:
        session.sql(statement)
    except Exception as e:
        if not left or "Fails to read snapshot" not in str(e):
            raise
        _again(session, statement, left - 1)


def _reported(driver: Driver, values: range) -> dict[str, list[list[Any]]]:
    found: dict[str, list[list[Any]]] = {}
    for event in of(Committed, driver.bus.events):
        if (
            event.job is not None
            and event.job.name[:1] in "st"
            and event.job.name[1:].isdigit()
            and int(event.job.name[1:]) in values
        ):
            outputs = [each.snapshot for each in event.outputs]
            found.setdefault(event.job.name, []).append([outputs, [each.snapshot for each in event.inputs]])
    found["gaps"] = [[gap.detail] for gap in of(Gap, driver.bus.events) if "isn't known" not in gap.detail]
    return found


def main() -> None:
    java_home, warehouse, database, *numbers = sys.argv[1:]
    with driver_with(Path(java_home), at(warehouse), spark__headwater__capture__hooks="off") as driver:
        print("ready", flush=True)
        sys.stdin.readline()
        events = write(driver, database, *(int(each) for each in numbers))
    print(json.dumps(events), flush=True)


if __name__ == "__main__":
    main()
