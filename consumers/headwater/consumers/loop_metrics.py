"""What the loops of writers, archivers and forwarders count alike: whether they go on, and what they wait for."""

from __future__ import annotations

import time
from collections import Counter
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
