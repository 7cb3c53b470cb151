"""The demo in the terminal: how it goes, and what is known at its end."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headwater.cli.demo import facts
from headwater.cli.demo.stage import Stage
from headwater.cli.demo.story import ACTS, TOP10, Act
from headwater.cli.demo.told import PRICE, Told, snapshot_of
from headwater.cli.output import Output
from headwater.events.presentation.words import seconds_of
from headwater.lineage.forms import as_text
from headwater.lineage.questions.versions import Lineage
from headwater.local.iceberg import VERSION


def _has_colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _ink(code: int) -> Callable[[str], str]:
    return lambda text: f"\x1b[{code}m{text}\x1b[0m" if _has_colours() else text


bold, faint, red, green = _ink(1), _ink(2), _ink(31), _ink(32)


class Progress:
    """A line for what happens, when it begins, and one for why it matters, when it is done."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def begin(self, stage: Stage) -> None:
        versions = f"Spark {stage.needs.spark_version}, Iceberg {VERSION}, Java {stage.needs.java.version}"
        self._say(f"A small warehouse, {len(ACTS)} runs of plain PySpark scripts ({versions}), no server.")
        self._say(faint(f"Everything goes into {stage.place}"))
        self._say("")

    def during(self, number: int, act: Act, run: Callable[[], None]) -> None:
        self._say(f"{faint(f'{number}/{len(ACTS)}')}  {bold(act.what)}")
        began = time.monotonic()
        run()
        mark = red("✗") if act.fails else green("✓")
        self._say(f"     {mark} {faint(f'{time.monotonic() - began:.0f} s')}  {act.why}")

    def _say(self, text: str) -> None:
        self._output.note(text)
        sys.stdout.flush()


def summarise(output: Output, told: Told, stage: Stage, seconds: float) -> None:
    for title, lines in _chapters(told, stage):
        output.note(f"\n{bold(title)}")
        for line in lines:
            output.note(f"  {line}" if line else "")
    output.note("")
    where = {"page": stage.page.as_uri(), "store": stage.store, "events": f"log:{stage.log}", "scripts": stage.jobs}
    output.record(f"Done in {seconds:.0f} s. Where everything is, until you remove {stage.place}", where)


def _chapters(told: Told, stage: Stage) -> Iterator[tuple[str, Sequence[str]]]:
    yield f"What {facts.at(TOP10, snapshot_of(told.top10))} was made from, through the whole chain", _tree(told.top10)
    states, meaning = facts.together(told)
    yield "Do revenue_today and top10 belong together?", [states, meaning]
    yield f"What a change of {PRICE} breaks", _tree(told.price)
    yield "The job that failed", list(_failed(told))
    yield (
        "What was done to the tables",
        [
            f"{seconds_of(each.at) if each.at else '?'}  {table}: {', '.join(each.changes)}"
            for table, each in told.changes()
        ],
    )
    yield "How far this goes", list(_completeness(told))
    yield "Try next", [line for why, how in facts.commands(stage.store) for line in (faint(f"# {why}"), how)]


def _failed(told: Told) -> Iterator[str]:
    error, left = facts.failure(told)
    ended = f" at {seconds_of(told.failed.ended)}" if told.failed.ended else ""
    yield f"{told.failed.job} {red(told.failed.status.value)}{ended}: {error}"
    yield left
    before = facts.change_before(told)
    if before is not None:
        table, change = before
        yield f"Before it, {table}: {', '.join(change.changes)}"


def _completeness(told: Told) -> Iterator[str]:
    yield f"complete until {seconds_of(told.complete_until)}" if told.complete_until else "nothing is known of that"
    yield facts.count(len(told.gaps), "gap") if told.gaps.rows else "no gaps: nothing is known to be missing"
    yield from (f"{each.about}: {each.detail or each.why.value}" for each in facts.limits_of(told))


def _tree(answer: Lineage[Any]) -> list[str]:
    """Without its title, and without how far it goes."""
    return as_text(answer).split("\n\n")[1].splitlines()
