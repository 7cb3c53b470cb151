"""A switch that kills its own process at a certain point, after it has ended the one that was killed before it.

python -m tests.kit.versions.switch_victim PLACE POINT COUNT

Each round corrects a table of Iceberg and one of Delta that is made from it, so that all rows have the round's number.
POINT is one of `POINTS`, and COUNT says at which arrival there. Without a point (`none`) nothing is killed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headwater import local
from headwater.lineage.store import Store
from headwater.versions.branches import BranchManager
from headwater.versions.branches.delta_commits import GuardedCommit
from headwater.versions.branches.format_branches import branches_of
from headwater.versions.branches.iceberg import IcebergBranches
from headwater.versions.correction.journal import CorrectionJournal, CorrectionState, corrections_in
from headwater.versions.correction.switched_tables import SparkSwitchTables
from headwater.versions.correction.switching import Switcher
from headwater.versions.step_journal import StepKind, StepState
from tests.kit.stores import open_new_store
from tests.kit.versions.aligned import warehouse_session
from tests.kit.versions.corrections import planned_chain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS, TOTALS = "ice.db.orders", "spark_catalog.default.totals"
_PLACES: Final[dict[str, tuple[type[Any], str]]] = {
    "commit of Iceberg": (IcebergBranches, "_commit"),
    "commit of Delta": (GuardedCommit, "_commit"),
    "report": (SparkSwitchTables, "report"),
    "removal": (SparkSwitchTables, "remove_mirror"),
    "step": (CorrectionJournal, "move_step"),
    "steps": (CorrectionJournal, "add"),
    "state": (CorrectionJournal, "move"),
}
POINTS: Final = [f"{when} {what}" for what in _PLACES for when in ("before", "after")]


def create_tables(place: Path) -> None:
    with warehouse_session(local.java().home, place) as spark:
        spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
        spark.sql(f"CREATE TABLE {ORDERS} (id INT, round INT) USING iceberg")
        spark.sql(f"CREATE TABLE {TOTALS} (id INT, round INT) USING delta")
        for table in (ORDERS, TOTALS):
            spark.sql(f"INSERT INTO {table} VALUES (1, 0), (2, 0)")


def rounds_of(spark: SparkSession) -> list[int]:
    """Return the number that the rows of each table have. An AssertionError if they have more than one."""
    found = [{row[0] for row in spark.sql(f"SELECT round FROM {table}").collect()} for table in (ORDERS, TOTALS)]
    assert all(len(numbers) == 1 for numbers in found), f"a table has rows of two rounds: {found}"
    return [numbers.pop() for numbers in found]


def open_round(spark: SparkSession, store: Store, number: int) -> CorrectionJournal:
    """Correct the tables on mirrors, and note it as a corrector does."""
    branch, tables = f"correction_{number}", (ORDERS, TOTALS)
    names, expected = [], {}
    for table in tables:
        formats = branches_of(spark, table)
        expected[table] = formats.main_head()
        tag = str(expected[table]) if formats.format == "delta" else f"made_{number}"
        if formats.format == "iceberg":
            spark.sql(f"ALTER TABLE {table} CREATE TAG {tag}")
        manager = BranchManager(spark, table)
        manager.create(branch, tag)
        names.append(manager.name_of(branch))
        spark.sql(f"INSERT OVERWRITE {names[-1]} SELECT id, {number} AS round FROM {names[0]}")
    journal = CorrectionJournal.create(store, planned_chain(tables), [(StepKind.MIRROR, each, {}) for each in tables])
    epoch = journal.take_over()
    for table, step in zip(tables, journal.load().steps, strict=True):
        detail = {"branch": branch, "expected": expected[table]}
        journal.move_step(epoch, journal.move_step(epoch, step, StepState.RUNNING), StepState.DONE, detail)
    head = BranchManager(spark, ORDERS).list()[0].head
    run = {"writes": [TOTALS], "target": {"reads": {ORDERS: head}}, "seconds": 600}
    [step] = journal.add(epoch, [(StepKind.RERUN, "totals", run)])
    journal.move_step(epoch, journal.move_step(epoch, step, StepState.RUNNING), StepState.DONE, run)
    journal.move(epoch, [CorrectionState.BEGINNING], CorrectionState.OPEN)
    return journal


def end_round(spark: SparkSession, store: Store, name: str) -> int:
    """Switch what is open, and return its round. An AssertionError if it isn't as if nobody was killed."""
    found = CorrectionJournal(store, name).load()
    branches = {step.subject: str(step.detail["branch"]) for step in found.of(StepKind.MIRROR)}
    expected = {step.subject: step.detail["expected"] for step in found.of(StepKind.MIRROR)}
    number = int(branches[ORDERS].rpartition("_")[2])
    tables = SparkSwitchTables(spark, store, branches)
    done = {each.table: each.snapshot for each in Switcher(store, name, lambda: nullcontext(tables)).switch()}
    assert rounds_of(spark) == [number, number]
    for table in (ORDERS, TOTALS):
        formats = branches_of(spark, table)
        assert formats.main_head() == done[table], table
        # Clones of rounds before come again: a session of the place registers all directories of Delta.
        assert branches[table] not in {branch.name for branch in formats.branches()}, table
    assert done[TOTALS] == expected[TOTALS] + 1, "the table of Delta has exactly one commit more"
    return number


def kill_at(point: str, count: int) -> None:
    """Let the process group end at this point, without a chance to do anything more."""
    when, _, what = point.partition(" ")
    owner, name = _PLACES[what]
    original: Callable[..., Any] = getattr(owner, name)
    arrivals = [0]

    def call(*args: Any, **kwargs: Any) -> Any:
        arrivals[0] += 1
        if when == "before" and arrivals[0] == count:
            os.killpg(0, signal.SIGKILL)
        found = original(*args, **kwargs)
        if when == "after" and arrivals[0] == count:
            os.killpg(0, signal.SIGKILL)
        return found

    setattr(owner, name, call)


def main(arguments: list[str]) -> None:
    place, point, count = Path(arguments[0]), arguments[1], int(arguments[2])
    with open_new_store(str(place / "store.db")) as store, warehouse_session(local.java().home, place) as spark:
        number = rounds_of(spark)[0]
        for each in corrections_in(store):
            if not each.state.is_over:
                number = end_round(spark, store, each.name)
        journal = open_round(spark, store, number + 1)
        if point != "none":
            kill_at(point, count)
        end_round(spark, store, journal.name)


if __name__ == "__main__":
    main(sys.argv[1:])
