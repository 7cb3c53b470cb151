"""The demo in the terminal: how it goes, and what is known at its end."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headwater.cli.demo import facts
from headwater.cli.demo.correction import WRONG_PRODUCT, Corrected
from headwater.cli.demo.facts import PRICE, Results, snapshot_of
from headwater.cli.demo.scenario import TOP10, Step
from headwater.cli.demo.workspace import Workspace
from headwater.cli.output import CommandOutput
from headwater.events.presentation.phrases import seconds_of
from headwater.lineage.questions.lineage_answers import LineageAnswer
from headwater.lineage.rendering import as_text
from headwater.terminal import Styled, printable


def _has_colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _ink(code: int) -> Callable[[str], str]:
    return lambda text: f"\x1b[{code}m{printable(text)}\x1b[0m" if _has_colours() else text


bold, faint, red, green = _ink(1), _ink(2), _ink(31), _ink(32)


class Progress:
    """Prints what happens when a step begins, and why it matters when it is done."""

    def __init__(self, output: CommandOutput, runs: int) -> None:
        self._output = output
        self._runs = runs

    def begin(self, workspace: Workspace) -> None:
        found = workspace.requirements
        versions = f"Spark {found.spark_version}, Java {found.java.version}, {found.iceberg.stem}"
        self._say(f"A small warehouse, {self._runs} runs of plain PySpark scripts ({versions}), no server.")
        self._say(faint(f"Everything goes into {workspace.place}"))
        self._say("")

    def run_step(self, number: int, step: Step, run: Callable[[], None]) -> None:
        self._say(f"{faint(f'{number}/{self._runs}')}  {bold(step.what)}")
        began = time.monotonic()
        run()
        mark = red("✗") if step.fails else green("✓")
        self._say(f"     {mark} {faint(f'{time.monotonic() - began:.0f} s')}  {step.why}")

    def _say(self, text: str) -> None:
        self._output.note(Styled(text))
        sys.stdout.flush()


def summarise(
    output: CommandOutput, results: Results, workspace: Workspace, corrected: Corrected | None, seconds: float
) -> None:
    for title, lines in _chapters(results, workspace, corrected):
        output.note(Styled(f"\n{bold(title)}"))
        for line in lines:
            output.note(Styled(f"  {line}" if line else ""))
    output.note("")
    where = {
        "page": workspace.page.as_uri(),
        "store": workspace.store,
        "events": f"log:{workspace.log}",
        "scripts": workspace.jobs,
    }
    title = f"Done in {seconds:.0f} s. Where everything is, until you remove {workspace.place}"
    output.record("demo", where, title)


def _chapters(
    results: Results, workspace: Workspace, corrected: Corrected | None
) -> Iterator[tuple[str, Sequence[str]]]:
    yield (
        f"What {facts.at(TOP10, snapshot_of(results.top10))} was made from, through the whole chain",
        _tree(results.top10),
    )
    states, meaning = facts.together(results)
    yield "Do revenue_today and top10 belong together?", [states, meaning, facts.shares(results)]
    yield f"What a change of {PRICE} breaks", _tree(results.price)
    yield "The job that failed", list(_failure_lines(results))
    yield (
        "What was done to the tables",
        [
            f"{seconds_of(each.at) if each.at else '?'}  {table}: {', '.join(each.changes)}"
            for table, each in results.changes()
        ],
    )
    if corrected is not None:
        yield "A wrong price, corrected after all of that", [*facts.correction_words(corrected), "", *_sold(corrected)]
    yield "How far this goes", list(_completeness(results, workspace.store))
    yield "Try next", [line for why, how in facts.commands(workspace.store) for line in (faint(f"# {why}"), how)]


def _failure_lines(results: Results) -> Iterator[str]:
    error, left = facts.failure(results)
    ended = f" at {seconds_of(results.failed.ended)}" if results.failed.ended else ""
    yield f"{results.failed.job} {red(results.failed.status.value)}{ended}: {error}"
    yield left
    before = facts.change_before(results)
    if before is not None:
        table, change = before
        yield f"Before it, {table}: {', '.join(change.changes)}"


def _sold(corrected: Corrected) -> Iterator[str]:
    """Yield top10 before and after."""
    yield f"{'top10':<10}{'before':>19}{'after':>22}"
    yield faint(f"{'product':<10}{'sold':>7}{'revenue':>12}{'sold':>10}{'revenue':>12}")
    for product, *numbers in facts.sold_rows(corrected):
        line = f"{product:<10}{numbers[0]:>7}{numbers[1]:>12}{numbers[2]:>10}{numbers[3]:>12}"
        yield bold(line) if product == WRONG_PRODUCT else line


def _completeness(results: Results, store: str) -> Iterator[str]:
    yield (
        f"complete until {seconds_of(results.complete_until)}" if results.complete_until else "nothing is known of that"
    )
    if results.gaps.rows:
        yield f"{facts.count(len(results.gaps), 'gap')}, listed by: {facts.gap_command(store)}"
    else:
        yield "no gaps: nothing is known to be missing"
    yield from (f"{limit.about}: {limit.detail or limit.why.value}" for limit in facts.limits_of(results))


def _tree(answer: LineageAnswer[Any]) -> list[str]:
    """Return the tree of an answer without its title and its reliability."""
    return as_text(answer).split("\n\n")[1].splitlines()
