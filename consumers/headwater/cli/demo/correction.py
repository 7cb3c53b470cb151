"""The demo's last act: a wrong price is corrected, and all that was made from it, while somebody reads."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from headwater.cli.demo.scenario import Reporter, Step
from headwater.cli.demo.workspace import Workspace, expect

CORRECTION: Final = Step(
    "reader.py",
    "Order 722 had a lamp at 4,500.00 that cost 4.50: the price is corrected, and all tables that were made from it",
    "nobody saw half of it: they were made again on branches, and each changed by one commit",
)
WRONG_PRODUCT: Final = "Lamp"
FOUND: Final = "correction.json"
READY: Final = "reader.ready"
"""The file by which the reader says that it has read once."""
_STOP: Final = "reader.stop"
_READS: Final = {"spark.headwater.read.consistent.max.age": "0s"}
"""Each query asks the store, so that it can see the new tables as soon as they belong together."""


@dataclass(frozen=True)
class Sold:
    """A row of top10."""

    product: str
    pieces: int
    revenue: Decimal


@dataclass(frozen=True)
class Corrected:
    """What the correction did, and what somebody saw meanwhile."""

    name: str
    tables: tuple[str, ...]
    """In the order in which their mirrors took their places."""
    before: tuple[Sold, ...]
    after: tuple[Sold, ...]
    first: Decimal
    """The revenue that the reader saw first."""
    last: Decimal
    queries: int
    mixtures: int
    """How many of the reader's queries found tables that didn't fit."""

    def products(self) -> list[tuple[str, Sold | None, Sold | None]]:
        """Return each product as it was and as it is, those of now first."""
        before, after = ({row.product: row for row in rows} for rows in (self.before, self.after))
        return [(name, before.get(name), after.get(name)) for name in dict.fromkeys([*after, *before])]


def play(workspace: Workspace, reporter: Reporter, number: int, snapshot: int) -> Corrected:
    """Correct what a snapshot of the orders brought."""
    reporter.run_step(number, CORRECTION, lambda: _run(workspace, number, snapshot))
    found = json.loads((workspace.place / FOUND).read_text(encoding="utf-8"))
    lines = (workspace.logs / f"{number}-reader.log").read_text(encoding="utf-8").splitlines()
    seen = {key: value for key, colon, value in (line.partition(": ") for line in lines) if colon}
    return Corrected(
        name=found["correction"],
        tables=tuple(found["tables"]),
        before=_rows(found["before"]),
        after=_rows(found["after"]),
        first=Decimal(seen["first"]),
        last=Decimal(seen["last"]),
        queries=int(seen["queries"]),
        mixtures=int(seen["mixtures"]),
    )


def _run(workspace: Workspace, number: int, snapshot: int) -> None:
    stop, reader = workspace.place / _STOP, f"{number}-reader"
    conf = {**workspace.consistent_conf(), **_READS}
    with ThreadPoolExecutor(1) as others:
        reading = others.submit(
            workspace.submit, "reader.py", str(workspace.place / READY), str(stop), name=reader, conf=conf
        )
        try:
            code = workspace.run_module(
                "headwater.cli.demo.correction_process", str(snapshot), name=f"{number}-correction"
            )
        finally:
            stop.touch()
        expect(code, fails=False, log=workspace.logs / f"{number}-correction.log")
        expect(reading.result(), fails=False, log=workspace.logs / f"{reader}.log")


def _rows(found: list[list[str]]) -> tuple[Sold, ...]:
    return tuple(Sold(product, int(pieces), Decimal(revenue)) for product, pieces, revenue in found)
