"""Timing two ways of doing the same in turns, so that both see the same machine, and telling the ratio."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


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


def row(name: str, compared: Compared, aim: float | None) -> str:
    """A line of the table: rates per second, the ratio, and what it should be at least."""
    wanted = "" if aim is None else f"{aim:>8.2f}  {'reached' if compared.ratio >= aim else 'MISSED'}"
    return f"{name:<44}{1 / compared.ours:>12,.0f}{1 / compared.bare:>12,.0f}{compared.ratio:>8.2f}{wanted}"


HEADER = f"{'':<44}{'ours/s':>12}{'bare/s':>12}{'ratio':>8}{'aim':>8}"
