"""Rounds of faults with writers, on one broker and one database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.kit.rounds import Tally, play_rounds
from tests.kit.writers.plan import WriterPlan, writer_plan_of
from tests.kit.writers.process import PROGRAM
from tests.kit.writers.round import WriterRound
from tests.kit.writers.stage import WriterStage

REPLAY = "tests.benchmarks.writer_rounds"


@dataclass
class WriterTally(Tally):
    events: int = 0
    copies: int = 0
    rows: int = 0
    starts: int = 0
    set_backs: int = 0
    settling: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        settling = sorted(self.settling) or [0.0]
        return (
            f"{self.rounds} rounds, {self.faults}; {self.events} events in {self.copies} copies became {self.rows} "
            f"rows; 0 lost, 0 duplicated, 0 wrong in the others; {self.starts} starts of writers, "
            f"{self.set_backs} databases set back; all stored after "
            f"{settling[len(settling) // 2]:.1f} s at the median, {settling[-1]:.1f} s at most; {self.seconds:.0f} s"
        )


def run_writer_rounds(
    stage: WriterStage,
    folder: Path,
    seeds: Iterable[int],
    *,
    tell: Callable[[str], object],
    go_on: bool = False,
    program: Sequence[str] = PROGRAM,
) -> WriterTally:
    tally = WriterTally()

    def play(plan: WriterPlan, place: Path) -> str:
        outcome = WriterRound(plan, stage, place, program).play()
        found = outcome.verdict
        tally.events += found.events
        tally.copies += found.copies
        tally.rows += outcome.rows
        tally.starts += outcome.starts
        tally.set_backs += outcome.set_backs
        tally.settling.append(outcome.settling)
        counts = f"{found.events:5} events, {found.copies:5} copies, {outcome.rows:5} rows"
        return f"{outcome.seconds:5.1f} s ({outcome.settling:4.1f})  {counts}"

    play_rounds(tally, folder, seeds, writer_plan_of, play, program=REPLAY, tell=tell, go_on=go_on)
    return tally
