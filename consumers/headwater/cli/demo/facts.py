"""What was results, in the words that the terminal and the page share."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from headwater.cli.demo.results import PRICE, Results, read_of, snapshot_of, versions_in
from headwater.cli.demo.scenario import DETAILS, ORDERS, REVENUE, TOP10
from headwater.lineage.questions.answers import AnswerLimit
from headwater.lineage.questions.history import HistoryEntry
from headwater.lineage.questions.runs import Run
from headwater.lineage.rendering.html.drawing import shorten


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
    fitting = " and ".join(at(each.table.dataset.label, each.table.snapshot) for each in results.aligned.rows)
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
    jobs = {_job(job) for edge in results.price for job in edge.jobs}
    return len(columns), len(tables), tuple(sorted(jobs))


def _job(step: str) -> str:
    """Steps of an application are called after it and what they write."""
    return step.partition(".")[0]


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


def limits_of(results: Results) -> list[AnswerLimit]:
    """Return what any of the answers may lack, each once."""
    return list(dict.fromkeys(limit for answer in results.all_answers() for limit in answer.limits))
