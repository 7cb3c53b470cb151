"""What happens in the demo: a streaming warehouse, with a change of tables and a job that fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Final, Protocol

from headwater.cli.demo.workspace import Workspace, expect

ORDERS: Final = "lake.ods.orders"
PRODUCTS: Final = "lake.ods.products"
DETAILS: Final = "lake.dwd.order_details"
REVENUE: Final = "lake.dws.revenue_today"
TOP10: Final = "lake.dws.top10"
TABLES: Final = (ORDERS, PRODUCTS, DETAILS, REVENUE, TOP10)
REPORT: Final = "daily_report"
SHARE: Final = "share_of_top10.py"
_FOUND: Final = "share: "


@dataclass(frozen=True)
class Step:
    script: str
    what: str
    why: str
    fails: bool = False
    is_consistent: bool = False
    """Whether its queries read snapshots that belong together."""


STEPS: Final = (
    Step(
        "shop_opens.py",
        "A shop opens: products and two batches of orders come in (lake.ods has data as they come)",
        "the scripts are plain PySpark; headwater is three lines of Spark's configuration",
    ),
    Step(
        "order_details.py",
        "A stream joins each order with its product (lake.dwd has the details)",
        "each micro-batch tells the snapshots that it read and the one that it made",
    ),
    Step(
        "daily_report.py",
        "A batch job sums up revenue_today and top10 (lake.dws has summaries)",
        "an overwrite begins a table's contents anew, so what is in it now can be known exactly",
    ),
    Step(
        "shop_changes.py",
        "A release changes orders and products, and more orders come in",
        "ALTER TABLE is an event too: who changed which column, and when",
    ),
    Step(
        "order_details.py",
        "The stream goes on where it stopped",
        "the same query after a restart: its commits join those before it without a gap",
    ),
    Step(
        "daily_report.py",
        "The report runs again, and fails half-way: it uses a column that was renamed",
        "revenue_today is new and top10 is old: do the two still belong together?",
        fails=True,
    ),
)
QUESTIONS: Final = (
    Step(
        SHARE,
        "Somebody asks for the share of top10 in revenue_today",
        "the SQL names no snapshot: it reads the newest of each, and they come from two different states",
    ),
    Step(
        SHARE,
        "The same script, with spark.headwater.read.consistent = true",
        "now it reads the newest snapshots that belong together, without a change of the SQL",
        is_consistent=True,
    ),
)
"""Asked when all that happened is in the store."""


class Reporter(Protocol):
    """Shows how the demo goes on."""

    def begin(self, workspace: Workspace) -> None: ...

    def run_step(self, number: int, step: Step, run: Callable[[], None]) -> None:
        """Call `run`, and show it."""
        ...


def play(workspace: Workspace, reporter: Reporter) -> None:
    day = f"{datetime.now(timezone.utc):%Y-%m-%d}"
    reporter.begin(workspace)
    for first, steps in ((1, STEPS), (1 + len(STEPS), QUESTIONS)):
        with workspace.run_writer():
            _run_all(workspace, reporter, steps, first, day)


def shares(workspace: Workspace) -> list[str]:
    """Return what was found: as the tables are now, and consistently."""
    logs = [workspace.logs / f"{_name(number, step)}.log" for number, step in enumerate(QUESTIONS, 1 + len(STEPS))]
    lines = [line for log in logs for line in log.read_text(encoding="utf-8").splitlines() if line.startswith(_FOUND)]
    return [line.removeprefix(_FOUND) for line in lines]


def _run_all(workspace: Workspace, reporter: Reporter, steps: Sequence[Step], first: int, day: str) -> None:
    for number, step in enumerate(steps, first):
        argument = str(workspace.place / "checkpoint") if step.script == "order_details.py" else day
        reporter.run_step(number, step, lambda n=number, a=step, given=argument: _run(workspace, n, a, given))  # type: ignore[misc]


def _run(workspace: Workspace, number: int, step: Step, argument: str) -> None:
    name = _name(number, step)
    conf = workspace.consistent_conf() if step.is_consistent else {}
    code = workspace.submit(step.script, argument, name=name, conf=conf)
    expect(code, fails=step.fails, log=workspace.logs / f"{name}.log")


def _name(number: int, step: Step) -> str:
    return f"{number}-{step.script.removesuffix('.py')}"
