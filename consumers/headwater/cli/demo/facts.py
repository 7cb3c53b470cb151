"""What the lineage store says of the demo's warehouse in the end, and the same in words."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from headwater.cli.demo.correction import WRONG_PRODUCT, Corrected, Sold
from headwater.cli.demo.scenario import DETAILS, ORDERS, REPORT, REVENUE, TABLES, TOP10
from headwater.events.jobs import JobStatus
from headwater.lineage import Lineage as Store
from headwater.lineage.questions.answers import Answer, AnswerLimit
from headwater.lineage.questions.columns import ColumnEdge
from headwater.lineage.questions.gaps import PossibleGap
from headwater.lineage.questions.history import HistoryEntry
from headwater.lineage.questions.jobs import TableAccess, TableOfJob
from headwater.lineage.questions.lineage_answers import LineageAnswer, SnapshotEdge
from headwater.lineage.questions.runs import Run
from headwater.lineage.questions.tables import TableEdge
from headwater.lineage.rendering.html.drawing import shorten
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
        return [step for step in self.steps if step.does is TableAccess.WRITES and step.last_run != self.failed.run]

    def written(self) -> list[TableOfJob]:
        return [step for step in self.steps if step.does is TableAccess.WRITES and step.last_run == self.failed.run]

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


def wrong_orders(results: Results) -> int:
    """Return the snapshot that order 722 came with: the second commit of the orders."""
    return versions_in(results.top10, ORDERS)[-1]


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


def name(table: str) -> str:
    """Return a table's name without catalog and database."""
    return table.rpartition(".")[2]


def at(table: str, snapshot: int | None) -> str:
    return f"{name(table)}@{'?' if snapshot is None else shorten(str(snapshot))}"


def count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def together(results: Results) -> tuple[str, str]:
    """Which state each of both was made from, and what that means."""
    states = (
        f"{at(TOP10, snapshot_of(results.top10))} was made from {at(DETAILS, read_of(results.top10))}, which holds "
        f"{count(len(versions_in(results.top10, ORDERS)), 'commit')} of {name(ORDERS)}; "
        f"{at(REVENUE, snapshot_of(results.revenue))} from {at(DETAILS, read_of(results.revenue))}, which holds "
        f"{len(versions_in(results.revenue, ORDERS))}."
    )
    if results.together.is_consistent:
        return states, "They belong together: both were made from one state."
    share = f"the share of {name(TOP10)} in {name(REVENUE)}"
    fitting = " and ".join(at(row.table.dataset.label, row.table.snapshot) for row in results.aligned.rows)
    return states, (
        f"They don't belong together: {share} would be computed from two different states. Those that do are {fitting}."
    )


def shares(results: Results) -> str:
    """What the same SQL finds without and with consistent reads."""
    now, consistent = results.shares
    share = f"{name(TOP10)} has {now} of {name(REVENUE)} as both are now"
    return f"{share}, and {consistent} in snapshots that belong together."


def reach_of_price(results: Results) -> tuple[int, int, tuple[str, ...]]:
    """Return how many columns and tables are made from the price, and by which jobs."""
    columns = {edge.target.label for edge in results.price}
    tables = {edge.target.dataset.label for edge in results.price}
    jobs = {job_of(job) for edge in results.price for job in edge.jobs}
    return len(columns), len(tables), tuple(sorted(jobs))


def job_of(step: str) -> str:
    """Return the job of a step: steps of an application are called after it and what they write."""
    return step.partition(".")[0]


def by_jobs(answer: LineageAnswer[TableEdge]) -> LineageAnswer[TableEdge]:
    """Return an answer with the jobs in place of their steps."""
    rows = (replace(edge, jobs=tuple(dict.fromkeys(map(job_of, edge.jobs)))) for edge in answer)
    return replace(answer, rows=tuple(rows))


def failure(results: Results) -> tuple[str, str]:
    """Return what went wrong, and what was written before."""
    written, left = (
        ", ".join(sorted(name(each.table) for each in some)) for some in (results.written(), results.left_out())
    )
    return error_of(results.failed), f"It had written {written or 'nothing'}; {left or 'nothing'} was left as it was."


def error_of(run: Run) -> str:
    """Return the error with the class of the exception without its package."""
    kind, _, message = (run.error or "no error was reported").partition(": ")
    return f"{kind.rpartition('.')[2]}: {message.rstrip('; ')}" if message else kind


def change_before(results: Results) -> tuple[str, HistoryEntry] | None:
    """Return the newest change of a table that names something the error names too: a hint, not a proof."""
    words = set((results.failed.error or "").replace("`", " ").split())
    fitting = [each for each in results.changes() if any(words & set(change.split()[2:]) for change in each[1].changes)]
    before = [
        each for each in fitting if results.failed.ended is None or (each[1].at and each[1].at < results.failed.ended)
    ]
    return before[-1] if before else None


def commands(store: str) -> Iterator[tuple[str, str]]:
    """Yield commands to try next: why, and how."""
    program = " ".join(map(shlex.quote, _program()))
    at_store = f"--store {shlex.quote(store)}"
    yield "Everything that is in top10", f"{program} lineage upstream {name(TOP10)} --state {at_store}"
    yield "What else depends on a column", f"{program} lineage downstream {'.'.join(PRICE.split('.')[-2:])} {at_store}"
    yield (
        "Which snapshots to join, as SQL",
        (f"{program} version align {name(REVENUE)} {name(TOP10)} -o sql {at_store}"),
    )
    yield "What top10 waits for, and who is late", f"{program} table late {name(TOP10)} {at_store}"


def gap_command(store: str) -> str:
    """Return the command that lists what may be missing."""
    return f"{' '.join(map(shlex.quote, _program()))} gap list --store {shlex.quote(store)}"


def _program() -> list[str]:
    """Return how to call this headwater in the shell that called it."""
    beside = Path(sys.executable).with_name("headwater")
    found = shutil.which("headwater")
    if found is not None and beside.exists() and Path(found).samefile(beside):
        return ["headwater"]
    return [str(beside)] if beside.exists() else [sys.executable, "-m", "headwater.cli"]


def correction_words(corrected: Corrected) -> tuple[str, str, str]:
    """Return what was wrong, what was done, and what a reader saw meanwhile."""
    lamps = [
        row.revenue for rows in (corrected.before, corrected.after) for row in rows if row.product == WRONG_PRODUCT
    ]
    wrong = (
        f"Order 722 had a lamp at 4,500.00 that cost 4.50, so top10 had lamps for {lamps[0]:,}; it has them for "
        f"{lamps[1]:,} now. The report is mended, too: top10 has the orders that came in after it had failed."
    )
    done = f"{', '.join(map(name, corrected.tables))} were made again on branches, and changed by one commit each."
    seen = (
        f"Meanwhile another process compared all of them with each other in {corrected.queries} queries, by consistent "
        f"reads: {corrected.mixtures} of these saw old and new data mixed. It saw a revenue of {corrected.first:,} "
        f"first, and {corrected.last:,} in the end."
    )
    return wrong, done, seen


def sold_rows(corrected: Corrected) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield each product of top10 with pieces and revenue before and after."""
    for product, before, after in corrected.products():
        yield (product, *_sold(before), *_sold(after))


def _sold(row: Sold | None) -> tuple[str, str]:
    return ("-", "-") if row is None else (f"{row.pieces:,}", f"{row.revenue:,}")


def correction_commands(corrected: Corrected, snapshot: int) -> Iterator[tuple[str, str]]:
    """Yield the commands that do the same: why, and how."""
    there = "--properties-file spark.conf"
    yield "What is wrong, and how it is made again", f"headwater correct plan {name(ORDERS)}@{snapshot}"
    yield "Make branches of the tables", f"headwater correct begin {name(ORDERS)}@{snapshot} {there}"
    yield "Correct the rows there", f'headwater correct sql {corrected.name} "UPDATE …" {there}'
    yield "Run the jobs there", f"headwater correct run {corrected.name} {there}"
    yield "Put the branches in the tables' places", f"headwater correct switch {corrected.name} {there}"


def limits_of(results: Results) -> list[AnswerLimit]:
    """Return what any of the answers may lack, each once."""
    return list(dict.fromkeys(limit for answer in results.all_answers() for limit in answer.limits))
