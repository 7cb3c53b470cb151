"""How a writer is: what probes and Prometheus ask."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

_LONGEST_BEAT: Final = 300.0
"""A transaction can take its time; what takes longer than this is no life any more."""
_SECONDS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_ROWS: Final = (1, 10, 100, 1_000, 5_000, 10_000, 25_000, 50_000, 100_000)


class Histogram:
    """How often something was no more than each of some bounds."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        place = next((place for place, bound in enumerate(self._bounds) if value <= bound), len(self._bounds))
        self._counts[place] += 1
        self._sum += value

    def exposed(self, name: str, text: str) -> Iterator[str]:
        total = 0
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} histogram"
        for bound, count in zip((*self._bounds, "+Inf"), list(self._counts), strict=True):
            total += count
            yield f'{name}_bucket{{le="{bound}"}} {total}'
        yield f"{name}_sum {self._sum:.6f}"
        yield f"{name}_count {total}"


@dataclass
class Vitals:
    """Written by the writer's loop, read by any thread: each value by itself is whole."""

    polled: int = 0
    """Events that were taken from the bus; those that are stored too are `events`."""
    events: int = 0
    rows: int = 0
    batches: int = 0
    letters: int = 0
    mirrored: int = 0
    """Dead letters that were sent to their topic."""
    mirror_troubles: int = 0
    retries: int = 0
    """Transactions that were begun again because they met another one."""
    waits: int = 0
    """How often something wasn't there, and was tried again later."""
    waiting_for: str | None = None
    """What is away now, and why."""
    away: str | None = None
    """Why nothing comes from the bus, where a poll wouldn't say so."""
    has_polled: bool = False
    behind: int | None = None
    """Records on the bus that weren't given yet."""
    stored_until: int | None = None
    """The append time of what was stored last, in microseconds."""
    letters_by: Counter[str] = field(default_factory=Counter)
    """By reasons."""
    waits_by: Counter[str] = field(default_factory=Counter)
    """By what wasn't there."""
    instants: int = 0
    """Of the coordinated pipeline, that are complete."""
    cache_hits: int = 0
    """Rows that weren't merged, because they are known to be in the store."""
    rebalances: int = 0
    partitions: int | None = None
    """That are this writer's now."""
    flush_seconds: Histogram = field(default_factory=lambda: Histogram(_SECONDS))
    flush_rows: Histogram = field(default_factory=lambda: Histogram(_ROWS))
    _beat: float = field(default_factory=time.monotonic)

    def beat(self) -> None:
        self._beat = time.monotonic()

    @property
    def is_alive(self) -> bool:
        return time.monotonic() - self._beat < _LONGEST_BEAT

    @property
    def is_ready(self) -> bool:
        """Whether bus and store answered when they were asked last."""
        return self.has_polled and self.waiting_for is None and self.away is None

    def merged(self, seconds: float, rows: int | None = None) -> None:
        """A transaction took so long."""
        self.flush_seconds.add(seconds)
        if rows is not None:
            self.flush_rows.add(rows)

    def waited(self, what: str, why: str) -> None:
        """Something isn't there."""
        self.waits += 1
        self.waits_by[what] += 1
        self.waiting_for = f"{what}: {why}"

    def figures(self) -> dict[str, int]:
        """For a person, at the end."""
        return {name: getattr(self, name) for name in ("batches", "events", "rows", "letters", "retries", "waits")}

    def exposed(self) -> Iterator[str]:
        """In Prometheus' text format."""
        for name, text in _COUNTERS.items():
            yield from _metric(f"headwater_writer_{name}_total", "counter", text, getattr(self, name))
        for name, (label, text) in _BY.items():
            yield from _labelled(f"headwater_writer_{name}_total", label, text, getattr(self, name))
        yield from _metric("headwater_writer_ready", "gauge", "Whether bus and store answer.", int(self.is_ready))
        if self.partitions is not None:
            yield from _metric("headwater_writer_partitions", "gauge", "Partitions that it reads.", self.partitions)
        yield from self._lag()
        yield from self.flush_seconds.exposed("headwater_writer_merge_seconds", "Time of a transaction.")
        yield from self.flush_rows.exposed("headwater_writer_merge_rows", "Rows of a transaction.")

    def _lag(self) -> Iterator[str]:
        if self.behind is not None:
            yield from _metric("headwater_writer_behind", "gauge", "Records not yet read.", self.behind)
        if self.stored_until is not None:
            age = time.time() - self.stored_until / 1_000_000
            text = "Seconds since what was stored last came to the bus."
            yield from _metric("headwater_writer_behind_seconds", "gauge", text, f"{age if self.behind else 0:.3f}")


_COUNTERS: Final = {
    "polled": "Events taken from the bus.",
    "events": "Events that are stored, or among the dead letters.",
    "rows": "Rows merged, of different keys in each transaction.",
    "batches": "Transactions.",
    "letters": "Events that couldn't be stored.",
    "mirrored": "Dead letters sent to their topic.",
    "mirror_troubles": "Times that dead letters couldn't be sent to their topic.",
    "retries": "Transactions begun again because they met another one.",
    "waits": "Times that the bus or the store wasn't there.",
    "rebalances": "Times that partitions came or went.",
    "instants": "Instants that are complete.",
    "cache_hits": "Rows not merged, because they are known to be in the store.",
}
_BY: Final = {
    "letters_by": ("reason", "Events that couldn't be stored, by reason."),
    "waits_by": ("cause", "Times that something wasn't there, by what it was."),
}


def _metric(name: str, kind: str, text: str, value: object) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    yield f"{name} {value}"


def _labelled(name: str, label: str, text: str, values: Mapping[str, int]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} counter"
    for value, count in sorted(dict(values).items()):
        yield f'{name}{{{label}="{value}"}} {count}'
