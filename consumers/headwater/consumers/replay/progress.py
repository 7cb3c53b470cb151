"""How far a replay is, and how long it will take."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol


class ProgressListener(Protocol):
    """Shows progress to somebody."""

    def show(self, progress: PhaseProgress) -> None:
        """Called every half second, and at the begin and end of each phase."""
        ...


@dataclass
class PhaseProgress:
    """One phase of a replay."""

    phase: str
    unit: str
    """What is counted: `events` or `rows`."""
    total: int = 0
    done: int = 0
    is_finished: bool = False
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def rate(self) -> float:
        """So many a second, since the phase began."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """None as long as nothing is known."""
        return None if not self.done else max(0, self.total - self.done) / self.rate


class NoProgress:
    """For whoever doesn't look."""

    def show(self, progress: PhaseProgress) -> None: ...
