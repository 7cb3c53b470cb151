"""Rounds of faults around the publisher, on one broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.kit.kafka.plan import Plan, plan_of
from tests.kit.kafka.round import Round
from tests.kit.kafka.stage import Stage
from tests.kit.rounds import Tally, play_rounds

PROGRAM = "tests.benchmarks.kafka_rounds"


@dataclass
class KafkaTally(Tally):
    events: int = 0
    copies: int = 0
    own: int = 0
    longest_tell: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.rounds} rounds, {self.faults}; {self.events} events in {self.copies} copies "
            f"({self.own} told by the bus itself); longest tell {self.longest_tell * 1000:.0f} ms; {self.seconds:.0f} s"
        )


def run_rounds(
    stage: Stage, folder: Path, seeds: Iterable[int], *, tell: Callable[[str], object], go_on: bool = False
) -> KafkaTally:
    tally = KafkaTally()

    def play(plan: Plan, place: Path) -> str:
        outcome = Round(plan, stage, place).run()
        found = outcome.verdict
        tally.events += found.events
        tally.copies += found.copies
        tally.own += found.own
        tally.longest_tell = max(tally.longest_tell, outcome.longest_tell)
        return f"{outcome.seconds:5.1f} s  {found.events:5} events, {found.copies:5} copies"

    play_rounds(tally, folder, seeds, plan_of, play, program=PROGRAM, tell=tell, go_on=go_on)
    return tally
