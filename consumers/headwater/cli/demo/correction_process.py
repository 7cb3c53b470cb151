"""The demo's last act: a wrong price, and all that was made from it, is corrected while somebody reads.

What `headwater correct begin`, `sql`, `run` and `switch` do one after the other, each with a Spark of its own, is done
here in one session of Spark, in a process of its own: `python -m headwater.cli.demo.correction_process SNAPSHOT`.
"""

from __future__ import annotations

import json
import runpy
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypedDict
from unittest.mock import patch

from headwater.cli.demo.correction import FOUND, READY
from headwater.cli.demo.scenario import ORDERS, TOP10
from headwater.cli.demo.workspace import store_conf
from headwater.cli.output import print_words
from headwater.config.sources import from_file
from headwater.lineage.store import Store, open_store
from headwater.listeners import install, uninstall
from headwater.versions.correction import CorrectionMode, CorrectionPlan, RerunCommands, plan_correction
from headwater.versions.correction.execution import job_driver, redirects
from headwater.versions.correction.execution.corrector import Corrector
from headwater.versions.correction.execution.spark_tables import SparkCorrectionTables
from headwater.versions.correction.execution.tables import Mirror
from headwater.versions.correction.journal import CorrectionJournal
from headwater.versions.correction.switched_tables import SparkSwitchTables
from headwater.versions.correction.switching import Switcher
from headwater.versions.spark_tables import command_session
from headwater.versions.step_journal import NewStep, StepKind

STATEMENT: Final = f"UPDATE {ORDERS} SET price = 4.50 WHERE order_id = 722"  # noqa: S608 - our own table
_LOG: Final = "spark.headwater.log."
_SECONDS: Final = 120.0


class Outcome(TypedDict):
    """What the process leaves in the demo's directory."""

    correction: str
    tables: list[str]
    """The tables that were switched, in their order."""
    before: list[list[str]]
    """Product, pieces sold and revenue of each row of top10."""
    after: list[list[str]]


@dataclass(frozen=True)
class _Jobs:
    """Runs jobs in the session that is there. `headwater correct run` gives each a process of its own."""

    spark: Any
    store: Store

    def run(
        self,
        name: str,
        _: str,
        command: str,
        mirrors: Sequence[Mirror],
        resets: Sequence[str],
        **_others: Any,
    ) -> None:
        for mirror in mirrors:
            if mirror.table in resets:
                job_driver.set_back(self.spark, mirror)
        script, *arguments = shlex.split(command)
        with redirects.correction(self.spark, self.store, name), patch.object(sys, "argv", [script, *arguments]):
            runpy.run_path(script, run_name="__main__")


def correct(place: Path, snapshot: int, store: Store) -> Outcome:
    commands = RerunCommands.read(place / "correction.toml")

    def plan() -> CorrectionPlan:
        with store.engine.connect() as connection:
            return plan_correction(connection, f"{ORDERS}@{snapshot}", mode=CorrectionMode.FULL, commands=commands)

    planned = plan()
    mirrors: list[NewStep] = [(StepKind.MIRROR, table.table, {}) for table in planned.corrected]
    journal = CorrectionJournal.create(store, planned, mirrors)
    with command_session(_properties(place, journal.name), "correction", is_reported=True) as spark:
        tables = SparkCorrectionTables(spark)
        corrector = Corrector(store, journal.name, lambda: nullcontext(tables), _say)
        before = _top10(spark)
        corrector.make_mirrors()
        with redirects.correction(spark, store, journal.name):
            spark.sql(STATEMENT)
        corrector.run(_Jobs(spark, store).run, lambda _: plan())
        install(spark).flush(timeout=_SECONDS)
        uninstall()  # what is done from here on is no trial, but production's
        _wait_for(place / READY)
        branches = {table: mirror.branch for table, mirror in redirects.mirrors_of(corrector.load()).items()}
        switch_tables = SparkSwitchTables(spark, store, branches)
        done = Switcher(store, journal.name, lambda: nullcontext(switch_tables), _say).switch()
        return {
            "correction": journal.name,
            "tables": [each.table for each in done],
            "before": before,
            "after": _top10(spark),
        }


def _properties(place: Path, name: str) -> Mapping[str, str]:
    """Return the demo's properties. What runs on mirrors is marked as such, and goes straight into the store."""
    found = {key: value for key, value in from_file(place / "spark.conf").items() if not key.startswith(_LOG)}
    return {**found, **store_conf(place), **redirects.marks_of(name)}


def _say(text: str) -> None:
    print_words(text, sys.stderr)  # into the act's log


def _top10(spark: Any) -> list[list[str]]:
    rows = spark.sql(f"SELECT product, sold, revenue FROM {TOP10} ORDER BY sold DESC, product").collect()  # noqa: S608
    return [[str(value) for value in row] for row in rows]


def _wait_for(file: Path) -> None:
    until = time.monotonic() + _SECONDS
    while not file.exists():
        if time.monotonic() > until:
            raise TimeoutError(f"there is no {file} after {_SECONDS:.0f} s")
        time.sleep(0.1)


def main(arguments: Sequence[str]) -> None:
    place = Path.cwd()
    with open_store(f"sqlite:///{place / 'lineage.db'}") as store:
        outcome = correct(place, int(arguments[0]), store)
    (place / FOUND).write_text(json.dumps(outcome), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
