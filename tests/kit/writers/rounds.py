"""Rounds of faults with writers one after another, on one broker and one database: counted, and replayable."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.kit.kafka.rounds import RoundError
from tests.kit.seeds import this_python
from tests.kit.writers.plan import WriterPlan, writer_plan_of
from tests.kit.writers.process import PROGRAM
from tests.kit.writers.round import WriterOutcome, WriterRound
from tests.kit.writers.stage import WriterStage

REPLAY = "{python} -m tests.benchmarks.writer_rounds --seed {seed} --rounds 1"


@dataclass
class Tally:
    """All rounds together."""

    rounds: int = 0
    events: int = 0
    copies: int = 0
    rows: int = 0
    starts: int = 0
    set_backs: int = 0
    failed: list[int] = field(default_factory=list)
    settling: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, outcome: WriterOutcome) -> None:
        self.events += outcome.verdict.events
        self.copies += outcome.verdict.copies
        self.rows += outcome.rows
        self.starts += outcome.starts
        self.set_backs += outcome.set_backs
        self.settling.append(outcome.settling)

    def __str__(self) -> str:
        found = f"{len(self.failed)} with a fault" + (f" (seeds {self.failed})" if self.failed else "")
        settling = sorted(self.settling) or [0.0]
        return (
            f"{self.rounds} rounds, {found}; {self.events} events in {self.copies} copies became {self.rows} rows; "
            f"0 lost, 0 duplicated, 0 wrong in the others; {self.starts} starts of writers, "
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
) -> Tally:
    """Run them; a RoundError for the first that fails, or all of them where one is to `go_on`."""
    tally, began = Tally(), time.monotonic()
    for seed in seeds:
        plan = writer_plan_of(seed)
        place = folder / f"round-{seed}"
        place.mkdir(parents=True)
        tally.rounds += 1
        try:
            outcome = WriterRound(plan, stage, place, program).play()
        except Exception as e:
            tally.failed.append(seed)
            words = _words(plan, place, e)
            if not go_on:
                raise RoundError(words) from e
            tell(words)
        else:
            tally.add(outcome)
            found = outcome.verdict
            counts = f"{found.events:5} events, {found.copies:5} copies, {outcome.rows:5} rows"
            tell(f"{outcome.seconds:5.1f} s ({outcome.settling:4.1f})  {counts}  {plan}")
            shutil.rmtree(place)
    tally.seconds = time.monotonic() - began
    return tally


def _words(plan: WriterPlan, place: Path, e: Exception) -> str:
    again = REPLAY.format(python=this_python(), seed=plan.seed)
    return f"FAILED {plan}\n{type(e).__name__}: {e}\nits files: {place}\nagain: {again}"
