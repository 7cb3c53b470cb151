"""What an archiver counts: for Prometheus, for probes and for people."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headwater.consumers.loop_metrics import LoopMetrics
from headwater.consumers.prometheus import labelled_lines, metric_lines

_PREFIX: Final = "headwater_archiver_"
_COUNTERS: Final = {
    "polled": "Records taken from the bus.",
    "records": "Records that are archived.",
    "undecoded": "Archived records that couldn't be decoded.",
    "flushes": "Commits to the archive.",
    "conflicts": "Times that another process had archived the same offsets.",
    "gaps": "Ranges that the bus had lost before they were read.",
}


@dataclass
class ArchiverMetrics(LoopMetrics):
    """Of an archiver."""

    records: int = 0
    undecoded: int = 0
    flushes: int = 0
    conflicts: int = 0
    gaps: int = 0
    buffered_bytes: int = 0
    archived_until: int | None = None
    """The latest append time that is archived, in microseconds."""

    def figures(self) -> dict[str, int]:
        """Return totals for people, at the end."""
        return {name: getattr(self, name) for name in ("records", "undecoded", "flushes", "conflicts", "gaps")}

    def render(self) -> Iterator[str]:
        """Yield the metrics in Prometheus' text format."""
        for name, text in _COUNTERS.items():
            yield from metric_lines(f"{_PREFIX}{name}_total", "counter", text, getattr(self, name))
        text = "Times that the archiver waited, by cause."
        yield from labelled_lines(f"{_PREFIX}waits_total", "cause", text, self.waits_by)
        yield from metric_lines(f"{_PREFIX}ready", "gauge", "Whether bus and archive answer.", int(self.is_ready))
        text = "Bytes that wait in memory to be archived."
        yield from metric_lines(f"{_PREFIX}buffered_bytes", "gauge", text, self.buffered_bytes)
        if self.lag is not None:
            yield from metric_lines(f"{_PREFIX}lag", "gauge", "Records not yet read.", self.lag)
        if self.archived_until is not None:
            text = "Seconds since what was archived last came to the bus."
            age = time.time() - self.archived_until / 1_000_000
            yield from metric_lines(f"{_PREFIX}age_seconds", "gauge", text, f"{max(0.0, age):.3f}")
