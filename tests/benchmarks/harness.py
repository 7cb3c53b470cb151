"""What benchmarks share: timing two ways of doing the same in turns, so that both see the same machine, and aims.

A benchmark that has an aim states it with `Aims` and exits with `Aims.report()`: 1 if a figure misses its aim, so that
`make bench` names it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import create_engine, text


@dataclass(frozen=True)
class Compared:
    """Seconds per call of each, and the median over the rounds of how fast ours is beside the bare one."""

    ours: float
    bare: float
    ratio: float


def compare(
    ours: Callable[[], object], bare: Callable[[], object], *, calls: int = 2_000, rounds: int = 15
) -> Compared:
    """A ratio of 1 means as fast as the bare one, 0.5 half as fast."""
    pairs = [(_seconds(ours, calls), _seconds(bare, calls)) for _ in range(rounds + 1)][1:]  # the first warms up
    mine, other = zip(*pairs, strict=True)
    ratio = statistics.median(b / a for a, b in pairs)
    return Compared(statistics.median(mine), statistics.median(other), ratio)


def _seconds(call: Callable[[], object], calls: int) -> float:
    started = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - started) / calls


def row(name: str, compared: Compared) -> str:
    """A line of a table: rates per second, and their ratio."""
    return f"{name:<48}{1 / compared.ours:>12,.0f}{1 / compared.bare:>12,.0f}{compared.ratio:>8.2f}"


def fsync_words(url: str) -> str:
    """Return whether a PostgreSQL waits for its disk, as the server says: where it doesn't, rates are no real ones."""
    engine = create_engine(url)
    with engine.connect() as connection:
        is_on = connection.scalar(text("SHOW fsync")) == "on"
    engine.dispose()
    words = "on: a commit is on the disk" if is_on else "off: nothing waits for the disk, and a real store is slower"
    return f"PostgreSQL with fsync {words}"


HEADER: Final = f"{'':<48}{'ours/s':>12}{'bare/s':>12}{'ratio':>8}"
MISSED: Final = "MISSED"


@dataclass
class Aims:
    """Figures with what they are to reach."""

    lines: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def at_least(self, figure: str, measured: float, aim: float, unit: str = "") -> None:
        """State a figure that is better the larger it is."""
        self._state(figure, f"{measured:,.2f} {unit}", f">= {aim:,.2f} {unit}", is_reached=measured >= aim)

    def at_most(self, figure: str, measured: float, aim: float, unit: str = "") -> None:
        """State a figure that is better the smaller it is."""
        self._state(figure, f"{measured:,.2f} {unit}", f"<= {aim:,.2f} {unit}", is_reached=measured <= aim)

    def is_true(self, figure: str, measured: bool) -> None:
        """State what is to hold, however long it takes."""
        self._state(figure, "yes" if measured else "no", "yes", is_reached=measured)

    def _state(self, figure: str, measured: str, aim: str, *, is_reached: bool) -> None:
        self.lines.append(f"{figure:<56}{measured.strip():>18}{aim.strip():>21}  {'reached' if is_reached else MISSED}")
        if not is_reached:
            self.missed.append(figure)

    def report(self) -> int:
        """Print the table of all aims, and return the exit code: 1 if one was missed, and if there is none."""
        print(f"\n{'aims':<56}{'measured':>18}{'aim':>21}")
        print("\n".join(self.lines) or "no aim was measured", flush=True)
        return 1 if self.missed or not self.lines else 0
