"""Rounds of faults one after another, on one broker: counted, and replayable from their seeds."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.kit.kafka.plan import Plan, plan_of
from tests.kit.kafka.round import Outcome, Round
from tests.kit.kafka.stage import Stage
from tests.kit.seeds import this_python

REPLAY = "{python} -m tests.benchmarks.kafka_rounds --seed {seed} --rounds 1"


@dataclass
class Tally:
    """All rounds together."""

    rounds: int = 0
    events: int = 0
    copies: int = 0
    own: int = 0
    lost_rounds: int = 0
    longest_tell: float = 0.0
    seconds: float = 0.0

    def add(self, outcome: Outcome) -> None:
        self.rounds += 1
        self.events += outcome.verdict.events
        self.copies += outcome.verdict.copies
        self.own += outcome.verdict.own
        self.longest_tell = max(self.longest_tell, outcome.longest_tell)

    def __str__(self) -> str:
        return (
            f"{self.rounds} rounds, {self.lost_rounds} with a fault; {self.events} events in {self.copies} copies "
            f"({self.own} told by the bus itself); longest tell {self.longest_tell * 1000:.0f} ms; {self.seconds:.0f} s"
        )


class RoundError(AssertionError):
    """A round in which something was wrong; says how to see it again."""


def run_rounds(
    stage: Stage, folder: Path, seeds: Iterable[int], *, tell: Callable[[str], object], go_on: bool = False
) -> Tally:
    """Run them; a RoundError for the first that fails, or all of them where one is to `go_on`."""
    tally, began = Tally(), time.monotonic()
    for seed in seeds:
        plan = plan_of(seed)
        place = folder / f"round-{seed}"
        place.mkdir(parents=True)
        try:
            outcome = Round(plan, stage, place).run()
        except Exception as e:
            tally.lost_rounds += 1
            tally.rounds += 1
            words = _words(plan, place, e)
            if not go_on:
                raise RoundError(words) from e
            tell(words)
        else:
            tally.add(outcome)
            found = outcome.verdict
            tell(f"{outcome.seconds:5.1f} s  {found.events:5} events, {found.copies:5} copies  {plan}")
            shutil.rmtree(place)
    tally.seconds = time.monotonic() - began
    return tally


def _words(plan: Plan, place: Path, e: Exception) -> str:
    again = REPLAY.format(python=this_python(), seed=plan.seed)
    return f"FAILED {plan}\n{type(e).__name__}: {e}\nits files: {place}\nagain: {again}"
