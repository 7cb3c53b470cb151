"""What happens in the demo: a streaming warehouse, with a change of tables and a job that fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Final, Protocol

from headwater.cli.demo.stage import Stage, expect

ORDERS: Final = "lake.ods.orders"
PRODUCTS: Final = "lake.ods.products"
DETAILS: Final = "lake.dwd.order_details"
REVENUE: Final = "lake.dws.revenue_today"
TOP10: Final = "lake.dws.top10"
TABLES: Final = (ORDERS, PRODUCTS, DETAILS, REVENUE, TOP10)
REPORT: Final = "daily_report"


@dataclass(frozen=True)
class Act:
    script: str
    what: str
    why: str
    fails: bool = False


ACTS: Final = (
    Act(
        "shop_opens.py",
        "A shop opens: products and two batches of orders come in (ODS)",
        "the scripts are plain PySpark; headwater is three lines of Spark's configuration",
    ),
    Act(
        "order_details.py",
        "A stream joins each order with its product (DWD)",
        "each micro-batch tells the snapshots that it read and the one that it made",
    ),
    Act(
        "daily_report.py",
        "A batch job sums up revenue_today and top10 (DWS)",
        "an overwrite begins a table's contents anew, so what is in it now can be told exactly",
    ),
    Act(
        "shop_changes.py",
        "A release changes orders and products, and more orders come in",
        "ALTER TABLE is an event too: who changed which column, and when",
    ),
    Act(
        "order_details.py",
        "The stream goes on where it stopped",
        "the same query after a restart: its commits join those before it without a gap",
    ),
    Act(
        "daily_report.py",
        "The report runs again, and fails half-way: it uses a column that was renamed",
        "revenue_today is new and top10 is old: do the two still belong together?",
        fails=True,
    ),
)


class Teller(Protocol):
    """Who says how it goes."""

    def begin(self, stage: Stage) -> None: ...

    def during(self, number: int, act: Act, run: Callable[[], None]) -> None:
        """Call `run`, and tell of it."""
        ...


def play(stage: Stage, teller: Teller) -> None:
    day = f"{datetime.now(timezone.utc):%Y-%m-%d}"
    teller.begin(stage)
    with stage.writing():
        for number, act in enumerate(ACTS, 1):
            argument = str(stage.place / "checkpoint") if act.script == "order_details.py" else day
            teller.during(number, act, lambda n=number, a=act, given=argument: _run(stage, n, a, given))  # type: ignore[misc]


def _run(stage: Stage, number: int, act: Act, argument: str) -> None:
    name = f"{number}-{act.script.removesuffix('.py')}"
    code = stage.submit(act.script, argument, name=name)
    expect(code, fails=act.fails, log=stage.logs / f"{name}.log")
