"""Corrections and roll-backs that kill their own process at a certain point, after they have ended what was left.

python -m tests.kit.versions.correction_victim PLACE POINT COUNT

In each round production gets a wrong order, and details are made from it. Then a correction is begun, the order is
corrected, production goes on, and the job runs on the mirrors in a process of its own. Then the mirrors take their
tables' places; or, for points of the commands that end it otherwise, it is aborted, and the tables are rolled back.
POINT is one of `POINTS`, and COUNT says at which arrival there. Without a point (`none`) nothing is killed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headwater import local
from headwater.lineage.questions.commit_facts import Amount
from headwater.lineage.store import Store
from headwater.versions.branches.format_branches import branches_of
from headwater.versions.branches.iceberg import IcebergBranches
from headwater.versions.correction.execution import reruns
from headwater.versions.correction.execution.corrector import Corrector, begin_correction
from headwater.versions.correction.execution.redirects import correction
from headwater.versions.correction.execution.reruns import JobRunner
from headwater.versions.correction.execution.spark_tables import SparkCorrectionTables
from headwater.versions.correction.execution.tables import CorrectionError, mirror_branch
from headwater.versions.correction.journal import Correction, CorrectionState, corrections_in
from headwater.versions.correction.model import CorrectionPlan, JobKind, PlannedJob
from headwater.versions.correction.switched_tables import SparkSwitchTables
from headwater.versions.correction.switching import Switcher
from headwater.versions.rollback import (
    RollbackPlan,
    RollbackRun,
    RollbackVerdict,
    RolledTable,
    begin_rollback,
    rollbacks_in,
)
from headwater.versions.rollback.session_tables import SessionTables
from headwater.versions.step_journal import StepJournal
from tests.kit.stores import open_new_store
from tests.kit.versions.aligned import warehouse_session
from tests.kit.versions.corrections import planned_chain
from tests.kit.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS, DETAILS = TABLES = ("ice.db.orders", "ice.db.details")
WRONG: Final = 999
JOB: Final = """
import sys, time
from pathlib import Path
from pyspark.sql import SparkSession
place = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
spark.table("ice.db.orders").count()
(place / "job-runs").touch()
if (place / "job-waits").exists():
    time.sleep(10)  # it is killed meanwhile
spark.sql("INSERT INTO ice.db.details SELECT id, amount * 10 AS total FROM ice.db.orders")
spark.stop()
"""
"""It adds rows, so one that runs twice on the same mirror shows."""
_DRIVER: Final = "tests.kit.versions.correction_job_victim"
JOB_POINTS: Final = ("before set back", "after set back", "before outcome", "after outcome")
_JOURNAL: Final[dict[str, tuple[type[Any], str]]] = {
    name: (StepJournal, method)
    for name, method in {
        "entry": "note",
        "epoch": "take_over",
        "step": "move_step",
        "steps": "add",
        "state": "move",
    }.items()
}
_PLACES: Final[dict[str, dict[str, tuple[type[Any], str]]]] = {
    "begin": {
        **{name: _JOURNAL[name] for name in ("entry", "epoch", "step", "state")},
        "mirror": (SparkCorrectionTables, "make_mirror"),
        "commit": (IcebergBranches, "_commit"),
    },
    "run": {
        **{name: _JOURNAL[name] for name in ("epoch", "step", "steps")},
        "take-over": (SparkCorrectionTables, "take_over"),
        "job": (JobRunner, "run"),
    },
    "switch": {
        **{name: _JOURNAL[name] for name in ("epoch", "step", "steps", "state")},
        "commit": (IcebergBranches, "_commit"),
        "report": (SparkSwitchTables, "report"),
        "removal": (SparkSwitchTables, "remove_mirror"),
    },
    "abort": {
        **{name: _JOURNAL[name] for name in ("epoch", "state")},
        "removal": (SparkCorrectionTables, "remove_mirror"),
        "commit": (IcebergBranches, "_commit"),
    },
    "rollback": {
        **{name: _JOURNAL[name] for name in ("entry", "epoch", "step", "state")},
        "commit": (IcebergBranches, "_commit"),
        "report": (SessionTables, "report"),
    },
}
_SAID: Final = (
    "before sql statement",
    "after sql statement",
    "within run job",
    *(f"job {each}" for each in JOB_POINTS),
)
POINTS: Final = (
    *(
        f"{when} {command} {what}"
        for command, places in _PLACES.items()
        for what in places
        for when in ("before", "after")
    ),
    *_SAID,
)


class Round:
    """What one process does: it ends what was left, and begins anew."""

    def __init__(self, spark: SparkSession, store: Store, place: Path, point: str, count: int) -> None:
        self._spark, self._store, self._place = spark, store, place
        self._point, self._count = point, count
        self._orders = place / "orders.json"

    # What production does.

    def create_tables(self) -> None:
        self._spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
        for table, columns in zip(TABLES, ("id INT, amount INT", "id INT, total INT"), strict=True):
            self._spark.sql(f"CREATE TABLE {table} ({columns}) USING iceberg")
        self._note([], {})
        self.order(1)
        (self._place / "job.py").write_text(JOB)

    def order(self, amount: int) -> None:
        ids, before = self._noted()
        number = max(ids, default=0) + 1
        self._spark.sql(f"INSERT INTO {ORDERS} VALUES ({number}, {amount})")
        new = f"SELECT id, amount * 10 AS total FROM {ORDERS} LEFT ANTI JOIN {DETAILS} USING (id)"
        self._spark.sql(f"INSERT INTO {DETAILS} {new}")
        self._note([*ids, number], before)

    def _note(self, ids: list[int], before: dict[str, Any]) -> None:
        self._orders.write_text(json.dumps([ids, before]))

    def _noted(self) -> tuple[list[int], dict[str, Any]]:
        ids, before = json.loads(self._orders.read_text())
        return ids, before

    def _heads(self) -> dict[str, int]:
        return {table: branches_of(self._spark, table).main_head() or 0 for table in TABLES}

    # What a round is.

    def settle(self) -> None:
        """End what was left, and look whether all is as if nobody was killed."""
        for each in corrections_in(self._store):
            if not each.state.is_over:
                self._end_correction(each.name, is_switched=True)
        for status in rollbacks_in(self._store):
            if not status.state.is_over:
                RollbackRun(self._store, SessionTables(self._spark, self._store), status.name).resume()
        ids, before = self._noted()
        if any(row[0] == WRONG for row in self._spark.sql(f"SELECT amount FROM {ORDERS}").collect()):
            self._roll_back(before["heads"])
        if before and self._heads() == before["heads"]:
            ids = before["ids"]
            self._note(ids, {})
        self._check(ids)

    def play(self, *, is_switched: bool) -> None:
        """Play one round, in which this process is killed if it has a point."""
        ids, _ = self._noted()
        self._note(ids, {"ids": ids, "heads": self._heads()})
        self.order(WRONG)
        self._arm("begin")
        plan = self._plan(self._heads()[ORDERS])
        name = begin_correction(self._store, plan, self._opened).load().name
        self._correct_rows(name)
        self.order(1)
        self._end_correction(name, is_switched=is_switched)
        if not is_switched:
            self._roll_back(self._noted()[1]["heads"])
        self.settle()

    def _check(self, ids: list[int]) -> None:
        orders = sorted(tuple(row) for row in self._spark.sql(f"SELECT * FROM {ORDERS}").collect())
        details = sorted(tuple(row) for row in self._spark.sql(f"SELECT * FROM {DETAILS}").collect())
        assert orders == [(number, 1) for number in ids], f"orders {orders}, of {ids}"
        assert details == [(number, 10) for number in ids], f"details {details}, of {ids}"
        left = [branch.name for table in TABLES for branch in branches_of(self._spark, table).branches()]
        assert left == [], f"mirrors are left: {left}"

    # What the commands do.

    def _opened(self) -> nullcontext[SparkCorrectionTables]:
        return nullcontext(SparkCorrectionTables(self._spark))

    def _plan(self, snapshot: int) -> CorrectionPlan:
        chain = planned_chain(TABLES)
        source, details = chain.tables
        job = PlannedJob(
            job="details",
            kind=JobKind.BATCH,
            group=None,
            reads=(ORDERS,),
            writes=(DETAILS,),
            commits=1,
            runs=1,
            commands=(f"{self._place / 'job.py'} {self._place}",),
            read=Amount(),
            written=Amount(),
            last_duration=None,
        )
        tables = (replace(source, starts_at=snapshot), replace(details, newest=self._heads()[DETAILS]))
        return replace(chain, snapshot=snapshot, tables=tables, jobs=(job,))

    def _plan_anew(self, found: Correction) -> CorrectionPlan:
        return self._plan(found.plan.snapshot)

    def _correct_rows(self, name: str) -> None:
        with correction(self._spark, self._store, name):
            if self._point == "before sql statement":
                os.killpg(0, signal.SIGKILL)
            self._spark.sql(f"UPDATE {ORDERS} SET amount = 1 WHERE amount = {WRONG}")
            if self._point == "after sql statement":
                os.killpg(0, signal.SIGKILL)

    def _end_correction(self, name: str, *, is_switched: bool) -> None:
        corrector = Corrector(self._store, name, self._opened)
        state = corrector.load().state
        if state is CorrectionState.BEGINNING:
            corrector.make_mirrors()
            state = CorrectionState.OPEN
        if state is CorrectionState.OPEN:
            self._correct_rows(name)
            self._arm("run")
            self._run(corrector)
        if state is CorrectionState.ABORTING or (state is CorrectionState.OPEN and not is_switched):
            self._arm("abort")
            corrector.abort()
            return
        self._arm("switch")
        branches = dict.fromkeys(TABLES, mirror_branch(name))
        tables = SparkSwitchTables(self._spark, self._store, branches)
        Switcher(self._store, name, lambda: nullcontext(tables)).switch()

    def _run(self, corrector: Corrector) -> None:
        """Run the job on the mirrors; once more, if its process was killed."""
        conf = dict(self._spark.sparkContext.getConf().getAll())
        kept = {
            key: value for key, value in conf.items() if key.startswith(("spark.jars", "spark.sql.", "spark.master"))
        }
        runner = JobRunner(configuration={**kept, "spark.headwater.enabled": "false", "spark.ui.enabled": "false"})
        when, _, what = self._point.partition(" ")
        os.environ["HEADWATER_TEST_KILL"] = what if when == "job" else ""
        if when == "job":
            reruns._DRIVER = _DRIVER  # type: ignore[misc]
        (self._place / "job-runs").unlink(missing_ok=True)
        if self._point == "within run job":
            (self._place / "job-waits").touch()
            threading.Thread(target=self._die_with_the_job, daemon=True).start()
        else:
            (self._place / "job-waits").unlink(missing_ok=True)
        try:
            corrector.run(runner.run, self._plan_anew)
        except CorrectionError:
            if when != "job":
                raise
            os.environ["HEADWATER_TEST_KILL"] = ""
            os.killpg(0, signal.SIGKILL)  # the next process goes on

    def _die_with_the_job(self) -> None:
        until((self._place / "job-runs").exists, "the job", seconds=600)
        os.kill(os.getpid(), signal.SIGKILL)  # and not the job's process

    def _roll_back(self, heads: dict[str, int]) -> None:
        """Roll the tables back; each that isn't there already."""
        self._arm("rollback")
        now = self._heads()
        tables = tuple(
            RolledTable(
                table=table,
                format="ICEBERG",
                verdict=RollbackVerdict.BACK,
                is_source=table == ORDERS,
                generation=None,
                newest=now[table],
                target=heads[table],
            )
            for table in TABLES
            if now[table] != heads[table]
        )
        plan = RollbackPlan(
            asked=f"{ORDERS}@{heads[ORDERS]}",
            source=ORDERS,
            snapshot=heads[ORDERS],
            is_chain=True,
            tables=tables,
            jobs=(),
            groups=(),
            belong_together=None,
            differences=(),
            complete_until=None,
            limits=(),
        )
        session = SessionTables(self._spark, self._store)
        name = begin_rollback(self._store, session, plan).name
        RollbackRun(self._store, session, name).resume()

    def _arm(self, command: str) -> None:
        """Have this process killed within a command, if its point is there."""
        when, _, rest = self._point.partition(" ")
        named, _, what = rest.partition(" ")
        if when in {"before", "after"} and named == command and what in _PLACES.get(command, {}):
            kill_at(_PLACES[command][what], when, self._count)
            self._point = "armed"


def kill_at(place: tuple[type[Any], str], when: str, count: int) -> None:
    """Let the process group end before or after a method, without a chance to do anything more."""
    owner, name = place
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


def create_tables(place: Path) -> None:
    with open_new_store(str(place / "store.db")) as store, warehouse_session(local.java().home, place) as spark:
        Round(spark, store, place, "none", 0).create_tables()


def main(arguments: list[str]) -> None:
    place, point, count = Path(arguments[0]), arguments[1], int(arguments[2])
    with open_new_store(str(place / "store.db")) as store, warehouse_session(local.java().home, place) as spark:
        Round(spark, store, place, "none", 0).settle()
        is_switched = not any(f" {command} " in point for command in ("abort", "rollback"))
        Round(spark, store, place, point, count).play(is_switched=is_switched)


if __name__ == "__main__":
    main(sys.argv[1:])
