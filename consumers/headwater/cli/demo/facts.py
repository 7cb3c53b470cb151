"""What was told, in the words that the terminal and the page share."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from headwater.cli.demo.story import DETAILS, ORDERS, REVENUE, TOP10
from headwater.cli.demo.told import PRICE, Told, read_of, snapshot_of, versions_in
from headwater.lineage.forms.html.drawing import short
from headwater.lineage.questions.answers import Limit
from headwater.lineage.questions.history import Modified
from headwater.lineage.questions.runs import Run


def name(table: str) -> str:
    """A table's name alone."""
    return table.rpartition(".")[2]


def at(table: str, snapshot: int | None) -> str:
    return f"{name(table)}@{'?' if snapshot is None else short(str(snapshot))}"


def count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def belongs_together(told: Told) -> bool:
    """Whether both were made from one state of the details."""
    return read_of(told.top10) == read_of(told.revenue)


def together(told: Told) -> tuple[str, str]:
    """Which state each of both was made from, and what that means."""
    states = (
        f"{at(TOP10, snapshot_of(told.top10))} was made from {at(DETAILS, read_of(told.top10))}, which holds "
        f"{count(len(versions_in(told.top10, ORDERS)), 'commit')} of {name(ORDERS)}; "
        f"{at(REVENUE, snapshot_of(told.revenue))} from {at(DETAILS, read_of(told.revenue))}, which holds "
        f"{len(versions_in(told.revenue, ORDERS))}."
    )
    if belongs_together(told):
        return states, "They belong together: both were made from one state."
    share = f"the share of {name(TOP10)} in {name(REVENUE)}"
    return states, f"They don't belong together: {share} would be computed from two different states."


def reach_of_price(told: Told) -> tuple[int, int, tuple[str, ...]]:
    """How many columns and tables are made from the price, and by which jobs."""
    columns = {edge.target.label for edge in told.price}
    tables = {edge.target.dataset.label for edge in told.price}
    jobs = {_job(job) for edge in told.price for job in edge.jobs}
    return len(columns), len(tables), tuple(sorted(jobs))


def _job(step: str) -> str:
    """Steps of an application are called after it and what they write."""
    return step.partition(".")[0]


def failure(told: Told) -> tuple[str, str]:
    """What went wrong, and what that left behind."""
    written, left = (", ".join(sorted(name(each.table) for each in some)) for some in (told.written(), told.left_out()))
    return error_of(told.failed), f"It had written {written or 'nothing'}; {left or 'nothing'} was left as it was."


def error_of(run: Run) -> str:
    """The class of the exception without its package."""
    kind, _, message = (run.error or "no error was told").partition(": ")
    return f"{kind.rpartition('.')[2]}: {message.rstrip('; ')}" if message else kind


def change_before(told: Told) -> tuple[str, Modified] | None:
    """The newest change of a table that names something the error names too: a hint, not a proof."""
    words = set((told.failed.error or "").replace("`", " ").split())
    fitting = [each for each in told.changes() if any(words & set(change.split()[2:]) for change in each[1].changes)]
    before = [each for each in fitting if told.failed.ended is None or (each[1].at and each[1].at < told.failed.ended)]
    return before[-1] if before else None


def commands(store: str) -> Iterator[tuple[str, str]]:
    """To try next: why, and how."""
    program = " ".join(map(shlex.quote, _program()))
    at_store = f"--store {shlex.quote(store)}"
    yield "Everything that is in top10", f"{program} lineage upstream {name(TOP10)} --state {at_store}"
    yield "What else depends on a column", f"{program} lineage downstream {'.'.join(PRICE.split('.')[-2:])} {at_store}"
    yield "What top10 waits for, and who is late", f"{program} late {name(TOP10)} {at_store}"


def _program() -> list[str]:
    """How this headwater is called in a shell like the one that we were called from."""
    beside = Path(sys.executable).with_name("headwater")
    found = shutil.which("headwater")
    if found is not None and beside.exists() and Path(found).samefile(beside):
        return ["headwater"]
    return [str(beside)] if beside.exists() else [sys.executable, "-m", "headwater.cli"]


def limits_of(told: Told) -> list[Limit]:
    """What any of the answers may lack, each once."""
    return list(dict.fromkeys(limit for answer in told.everything() for limit in answer.limits))
