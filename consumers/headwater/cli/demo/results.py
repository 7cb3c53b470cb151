"""What the store says of the demo: all that is shown at its end comes from here, and so from `headwater.lineage`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headwater.cli.demo.scenario import DETAILS, ORDERS, REPORT, REVENUE, TABLES, TOP10
from headwater.events.jobs import JobStatus
from headwater.lineage import Lineage as Store
from headwater.lineage.questions.answers import Answer
from headwater.lineage.questions.columns import ColumnEdge
from headwater.lineage.questions.gaps import PossibleGap
from headwater.lineage.questions.history import HistoryEntry
from headwater.lineage.questions.jobs import TableAccess, TableOfJob
from headwater.lineage.questions.lineage_answers import LineageAnswer, SnapshotEdge
from headwater.lineage.questions.runs import Run
from headwater.lineage.questions.tables import TableEdge
from headwater.versions import AlignmentAnswer, ConsistencyAnswer, align, check

PRICE = f"{ORDERS}.price"


@dataclass(frozen=True)
class Results:
    tables: tuple[LineageAnswer[TableEdge], ...]
    """What top10 and revenue_today are made from."""
    top10: LineageAnswer[SnapshotEdge]
    """All that is in its newest snapshot, commit by commit."""
    revenue: LineageAnswer[SnapshotEdge]
    together: ConsistencyAnswer
    """Whether the newest snapshots of both belong together."""
    aligned: AlignmentAnswer
    """The newest ones that do."""
    price: LineageAnswer[ColumnEdge]
    runs: Answer[Run]
    steps: Answer[TableOfJob]
    """The tables that the report reads and writes."""
    histories: Mapping[str, Answer[HistoryEntry]]
    gaps: Answer[PossibleGap]
    complete_until: datetime | None
    shares: Sequence[str]
    """The share of top10 in revenue_today: as both are now, and in snapshots that belong together."""

    @property
    def failed(self) -> Run:
        """Return the newest run that failed."""
        return next(run for run in self.runs if run.status is JobStatus.FAILED)

    def left_out(self) -> list[TableOfJob]:
        """Return the tables that the report wrote in the run before, and not in the one that failed."""
        return [each for each in self.steps if each.does is TableAccess.WRITES and each.last_run != self.failed.run]

    def written(self) -> list[TableOfJob]:
        return [each for each in self.steps if each.does is TableAccess.WRITES and each.last_run == self.failed.run]

    def changes(self) -> Iterator[tuple[str, HistoryEntry]]:
        """Yield what was done to tables since they were created."""
        for table, history in self.histories.items():
            yield from ((table, each) for each in history if each.kind != "CreateTable")

    def all_answers(self) -> Iterator[Answer[Any]]:
        yield from self.tables
        yield from (self.top10, self.revenue, self.together, self.aligned, self.price, self.runs, self.steps, self.gaps)
        yield from self.histories.values()


def read(store: str, shares: Sequence[str]) -> Results:
    with Store.open(store) as lineage:
        return Results(
            tables=tuple(lineage.upstream_tables(table) for table in (TOP10, REVENUE)),
            top10=lineage.upstream_snapshots(TOP10, basis="state"),
            revenue=lineage.upstream_snapshots(REVENUE, basis="state"),
            together=check(lineage, (REVENUE, TOP10)),
            aligned=align(lineage, (REVENUE, TOP10)),
            price=lineage.downstream_columns(PRICE),
            runs=lineage.runs(),
            steps=lineage.tables_of(REPORT),
            histories={table: lineage.history(table) for table in TABLES},
            gaps=lineage.gaps(),
            complete_until=lineage.complete_until(),
            shares=shares,
        )


def snapshot_of(answer: LineageAnswer[SnapshotEdge]) -> int | None:
    """Which snapshot it is that was asked about."""
    return max((edge for edge in answer if edge.depth == 1), key=lambda edge: edge.at).target.snapshot


def read_of(answer: LineageAnswer[SnapshotEdge], table: str = DETAILS) -> int | None:
    """Which snapshot of a table the newest commit read."""
    newest = snapshot_of(answer)
    return next((edge.source.snapshot for edge in answer if edge.target.snapshot == newest and _is(edge, table)), None)


def versions_in(answer: LineageAnswer[SnapshotEdge], table: str) -> list[int]:
    """Snapshots of a table that are in it, as they were read or made, the oldest first."""
    met: dict[int, datetime] = {}
    for edge in answer:
        for version in (edge.target, edge.source):
            if version.dataset is not None and version.dataset.label == table and version.snapshot is not None:
                met[version.snapshot] = min(edge.at, met.get(version.snapshot, edge.at))
    return sorted(met, key=met.__getitem__)


def _is(edge: SnapshotEdge, table: str) -> bool:
    return edge.source.dataset is not None and edge.source.dataset.label == table
