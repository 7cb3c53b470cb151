"""Rounds of faults one after another: counted, and each replayable from its seed."""

from __future__ import annotations

import shutil
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.kit import seeds

PlanT = TypeVar("PlanT")


@dataclass
class Tally:
    """All rounds together."""

    rounds: int = 0
    failed: list[int] = field(default_factory=list)
    """The seeds of rounds in which something was wrong."""
    seconds: float = 0.0

    @property
    def faults(self) -> str:
        return f"{len(self.failed)} with a fault" + (f" (seeds {self.failed})" if self.failed else "")


class RoundError(AssertionError):
    """A round in which something was wrong; says how to see it again."""


def play_rounds(
    tally: Tally,
    folder: Path,
    numbers: Iterable[int],
    plan_of: Callable[[int], PlanT],
    play: Callable[[PlanT, Path], str],
    *,
    program: str,
    tell: Callable[[str], object],
    go_on: bool = False,
) -> None:
    """Play the rounds of these seeds: a RoundError for the first that fails, or all of them where one is to `go_on`.

    `play` adds a round to the tally and returns what is to be told of it. `program` plays one again by its seed.
    """
    began = time.monotonic()
    for seed in numbers:
        plan, place = plan_of(seed), folder / f"round-{seed}"
        place.mkdir(parents=True)
        tally.rounds += 1
        try:
            words = f"{play(plan, place)}  {plan}"
        except Exception as e:
            tally.failed.append(seed)
            again = f"{seeds.this_python()} -m {program} --seed {seed} --rounds 1"
            words = f"FAILED {plan}\n{type(e).__name__}: {e}\nits files: {place}\nagain: {again}"
            if not go_on:
                raise RoundError(words) from e
        else:
            shutil.rmtree(place)
        tell(words)
    tally.seconds = time.monotonic() - began


def rounds_parser(description: str | None) -> ArgumentParser:
    """Return the parser of a program that plays rounds."""
    parser = ArgumentParser(description=description)
    parser.add_argument("--seed", type=int, default=seeds.seed(), help="the first round's; the next ones count up")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--folder", type=Path, default=None, help="where rounds that fail leave their files")
    return parser


def show_rounds(given: Namespace, run: Callable[[Path, range], Tally]) -> int:
    """Have rounds played, in a folder and with these seeds. Return 1 if one failed."""
    folder = given.folder or Path(tempfile.mkdtemp(prefix="headwater-rounds-"))
    numbers = range(given.seed, given.seed + given.rounds)
    print(f"seeds {numbers.start} to {numbers.stop - 1}; rounds that fail leave their files in {folder}", flush=True)
    tally = run(folder, numbers)
    print(tally)
    return 1 if tally.failed else 0


def tell_at_once(line: str) -> None:
    print(line, flush=True)
