"""What a forwarder counts: for Prometheus, for probes and for the status that people see."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from headwater.consumers.metrics import LoopMetrics, labelled_lines

_RATE_SECONDS: Final = 60.0
_PREFIX: Final = "headwater_forwarder_"


class RateMeter:
    """Events a second over the last minute."""

    def __init__(self) -> None:
        self._counts: deque[tuple[float, int]] = deque(maxlen=10_000)
        self._began = time.monotonic()

    def add(self, count: int) -> None:
        self._counts.append((time.monotonic(), count))

    def read(self) -> float:
        now = time.monotonic()
        while self._counts and self._counts[0][0] < now - _RATE_SECONDS:
            self._counts.popleft()
        return sum(count for _, count in self._counts) / max(1.0, min(_RATE_SECONDS, now - self._began))


@dataclass
class ForwarderMetrics(LoopMetrics):
    """Of a forwarder. Its waits are failed attempts, by cause."""

    name: str
    sent: int = 0
    """Events that the target has; one that was sent twice counts twice."""
    filtered: int = 0
    dead_letters: int = 0
    """Events that became dead letters since the start."""
    dead_letters_waiting: int = 0
    """Those that wait now."""
    retried: int = 0
    """Dead letters that a retry sent."""
    postponed: int = 0
    """Events that the target failed on, and that are tried again with the next ones."""
    lost: int = 0
    """Records that the bus no longer had when they were to be read, as far as known, since the start."""
    last_error: str | None = None
    last_error_at: float | None = None
    has_ended: bool = False
    sent_until: int | None = None
    """The append time of the last record that is done with, in microseconds."""
    rate: RateMeter = field(default_factory=RateMeter)

    @property
    def is_alive(self) -> bool:
        return self.has_ended or super().is_alive

    def record_wait(self, what: str, why: str) -> None:
        super().record_wait(what, why)
        self.record_error(f"{what}: {why}")

    def record_error(self, words: str) -> None:
        self.last_error, self.last_error_at = words, time.time()

    def record_sent(self, count: int) -> None:
        self.sent += count
        self.rate.add(count)


@dataclass(frozen=True)
class ForwardersHealth:
    """All forwarders of a process, as its health server shows them."""

    metrics: Sequence[ForwarderMetrics]

    @property
    def is_alive(self) -> bool:
        return all(metric.is_alive for metric in self.metrics)

    @property
    def is_ready(self) -> bool:
        """Whether all have a bus. A target that is away is no reason to take the process away from the others."""
        return all(metric.has_polled for metric in self.metrics)

    @property
    def fault(self) -> str | None:
        faults = [f"{metric.name} waits for {metric.fault}" for metric in self.metrics if metric.fault]
        return "; ".join(faults) or None

    def render(self) -> Iterator[str]:
        for name, (kind, text) in _FIGURES.items():
            values = {metric.name: figure for metric in self.metrics if (figure := _figure(metric, name)) is not None}
            ending = "_total" if kind == "counter" else ""
            yield from labelled_lines(f"{_PREFIX}{name}{ending}", "forwarder", text, values, kind)
        yield f"# HELP {_PREFIX}failures_total Failed attempts, by cause."
        yield f"# TYPE {_PREFIX}failures_total counter"
        for metric in self.metrics:
            for cause, count in sorted(metric.waits_by.items()):
                yield f'{_PREFIX}failures_total{{forwarder="{metric.name}",cause="{cause}"}} {count}'


_FIGURES: Final = {
    "polled": ("counter", "Records read from the bus."),
    "sent": ("counter", "Events sent to the target."),
    "filtered": ("counter", "Events that the filters left out."),
    "dead_letters": ("counter", "Events that became dead letters."),
    "retried": ("counter", "Dead letters that a retry sent."),
    "dead_letters_waiting": ("gauge", "Dead letters that wait."),
    "postponed": ("gauge", "Events that the target failed on, which are tried again with the next ones."),
    "lost": ("counter", "Records that the bus no longer had when they were to be read."),
    "lag": ("gauge", "Records not yet read."),
    "lag_seconds": ("gauge", "Seconds since what was sent last came to the bus."),
    "ready": ("gauge", "Whether bus and target answer."),
}


def _figure(metrics: ForwarderMetrics, name: str) -> float | None:
    if name == "ready":
        return int(metrics.is_ready)
    if name == "lag_seconds":
        if metrics.sent_until is None:
            return None
        return round(time.time() - metrics.sent_until / 1_000_000, 3) if metrics.lag else 0
    value: int | None = getattr(metrics, name)
    return value
