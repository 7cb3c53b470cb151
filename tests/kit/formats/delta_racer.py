"""Writers that race in one application, and what was reported of each of their commits.

    python -m tests.kit.formats.delta_racer <java home> <directory> <application> <rounds>   # JSON, a line per commit

Each writer is a thread with a session of its own. It appends to `t`, or as the last of them to `s`, a row that says who
it is and how many rows the other table had. A table of this race has as many rows as its version's number, so that the
row says which version was read, and the log which version was made; nothing of that comes from capture.
"""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headwater.events import Committed, Gap
from headwater.listeners.capture.formats.delta import write_results
from headwater.listeners.capture.formats.delta.commits import DeltaCommit
from tests.kit.spark.driver import DELTA, Driver, driver_with, of

QUICK = {
    "spark__databricks__delta__snapshotPartitions": "1",
    "spark__sql__sources__parallelPartitionDiscovery__parallelism": "2",
    "spark__default__parallelism": "2",
}
WRITERS = 4
COUNTS = ("count(*)", "coalesce(sum(1), 0)")
"""Answered from the log, and by a scan."""


@dataclass(frozen=True)
class CommitReport:
    """What one Committed said of the commit that wrote the row of `who`."""

    who: str
    made: tuple[int | None, ...]
    read: tuple[int | None, ...]
    gaps: int
    transactions: tuple[str | None, ...]


def make_tables(driver: Driver, directory: Path) -> None:
    for name in ("t", "s"):
        driver.run(f"CREATE TABLE delta.`{directory / name}` (who STRING, n BIGINT) USING delta")


def race(driver: Driver, directory: Path, application: str, rounds: int) -> list[CommitReport]:
    transactions: dict[tuple[str, int | None], str | None] = {}
    _remember(transactions)
    names = [f"{application}{writer}" for writer in range(WRITERS)]
    threads = [
        threading.Thread(target=_write, args=(driver.spark, directory, n == WRITERS - 1, name, rounds))
        for n, name in enumerate(names)
    ]

    def run(_: object) -> None:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    events = driver.events_of(run)
    commits = {name: [c for c in of(Committed, events) if c.job and c.job.name == name] for name in names}
    gaps = [gap.first_barrier for gap in of(Gap, events)]
    return [
        _report_of(f"{name}-{turn}", each, gaps, transactions)
        for name, those in commits.items()
        for turn, each in enumerate(those)
    ]


def _report_of(who: str, committed: Committed, gaps: list[Any], transactions: dict[Any, str | None]) -> CommitReport:
    made = tuple(output.snapshot for output in committed.outputs)
    places = [output.dataset.name.rpartition("/")[2] for output in committed.outputs if output.dataset]
    ids = tuple(transactions.get(each) for each in zip(places, made, strict=True))
    return CommitReport(
        who, made, tuple(each.snapshot for each in committed.inputs), gaps.count(committed.barrier), ids
    )


def _write(spark: Any, directory: Path, back: bool, who: str, rounds: int) -> None:
    session = spark.newSession()
    session.conf.set("spark.headwater.job.name", who)
    source, target = ("t", "s") if back else ("s", "t")
    for turn in range(rounds):
        count = COUNTS[turn % 2]
        session.sql(
            f"INSERT INTO delta.`{directory / target}` SELECT '{who}-{turn}', {count} FROM delta.`{directory / source}`"
        )


def _remember(transactions: dict[tuple[str, int | None], str | None]) -> None:
    """The ids of transactions as the hook saw them, which no event tells."""
    module: Any = write_results
    original = module.commits_of

    def seen(facts: Any) -> list[DeltaCommit]:
        found: list[DeltaCommit] = original(facts)
        for each in found:
            transactions[each.path.rpartition("/")[2], each.version] = each.transaction
        return found

    module.commits_of = seen


def wrongs(directory: Path, captured: list[CommitReport]) -> list[str]:
    """What the tables' own logs contradict."""
    by_row = {who: entry for name in ("t", "s") for who, entry in rows_of(directory / name).items()}
    found = [f"{who} was told of twice" for who in by_row if len([t for t in captured if t.who == who]) != 1]
    for each in captured:
        version, count, transaction = by_row[each.who]
        right = CommitReport(each.who, (version,), (count,), 0, (transaction,))
        if each != right:
            found.append(f"{each} should be {right}")
    return found


def rows_of(table: Path) -> dict[str, tuple[int, int, str]]:
    """By who wrote it: the version that a row came with, the number in it, the transaction."""
    found = {}
    for file in sorted((table / "_delta_log").glob("0*.json")):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        info = next(each["commitInfo"] for each in actions if "commitInfo" in each)
        for each in actions:
            if "add" in each:
                least = json.loads(each["add"]["stats"])["minValues"]
                found[least["who"]] = (int(file.stem), least["n"], info["txnId"])
    return found


def main(java_home: str, directory: str, application: str, rounds: str) -> None:
    with driver_with(Path(java_home), DELTA, **QUICK) as driver:
        print("READY", flush=True)
        sys.stdin.readline()
        for each in race(driver, Path(directory), application, int(rounds)):
            print(json.dumps(asdict(each)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
