"""What the loops of writers, archivers and forwarders count alike: whether they go on, and what they wait for.

Lines in Prometheus' text format.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

_LONGEST_BEAT: Final = 300.0
"""A loop that shows no progress for this long isn't alive. A transaction or a call may take a while."""


@dataclass(kw_only=True)
class LoopMetrics:
    """A loop sets these values, any thread may read them."""

    polled: int = 0
    """Records taken from the bus."""
    has_polled: bool = False
    lag: int | None = None
    """Unread records on the bus."""
    waiting_for: str | None = None
    """What the loop waits for now, and why."""
    outage: str | None = None
    """Why the bus delivers nothing, where a poll doesn't raise an error."""
    waits_by: Counter[str] = field(default_factory=Counter)
    """Waits, by what was waited for."""
    _beat: float = field(default_factory=time.monotonic)

    def beat(self) -> None:
        """Record that the loop makes progress."""
        self._beat = time.monotonic()

    @property
    def is_alive(self) -> bool:
        return time.monotonic() - self._beat < _LONGEST_BEAT

    @property
    def is_ready(self) -> bool:
        """Whether the bus and what is filled from it answered the last time."""
        return self.has_polled and self.fault is None

    @property
    def fault(self) -> str | None:
        return self.waiting_for or self.outage

    def record_wait(self, what: str, why: str) -> None:
        """Record that something isn't available."""
        self.waits_by[what] += 1
        self.waiting_for = f"{what}: {why}"


class Histogram:
    """Counts values by upper bounds."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        place = next((place for place, bound in enumerate(self._bounds) if value <= bound), len(self._bounds))
        self._counts[place] += 1
        self._sum += value

    def render(self, name: str, text: str) -> Iterator[str]:
        total = 0
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} histogram"
        for bound, count in zip((*self._bounds, "+Inf"), list(self._counts), strict=True):
            total += count
            yield f'{name}_bucket{{le="{bound}"}} {total}'
        yield f"{name}_sum {self._sum:.6f}"
        yield f"{name}_count {total}"


def metric_lines(name: str, kind: str, text: str, value: object) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    yield f"{name} {value}"


def labelled_lines(
    name: str, label: str, text: str, values: Mapping[str, float], kind: str = "counter"
) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for value, count in sorted(dict(values).items()):
        yield f'{name}{{{label}="{value}"}} {count}'
