"""Events that the spool refused, until a Gap reports them."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from headwater.events.clock import moment_of
from headwater.events.envelope import Event, EventFamily
from headwater.events.health import Gap, GapReason


@dataclass
class RefusedEvents:
    """A number of refused events, with their families and times."""

    families: Counter[EventFamily] = field(default_factory=Counter)
    first: datetime | None = None
    last: datetime | None = None
    why: str = ""

    def add(self, other: RefusedEvents) -> None:
        """Both, in whatever order they came."""
        self.families += other.families
        self.first = min((time for time in (self.first, other.first) if time), default=None)
        self.last = max((time for time in (self.last, other.last) if time), default=None)
        self.why = other.why or self.why

    def gap(self) -> Gap:
        one = next(iter(self.families)) if len(self.families) == 1 else None
        return Gap(
            reason=GapReason.SPOOL_FAILED,
            detail=self.why,
            missed_family=one,
            missed=self.families.total(),
            first_time=self.first,
            last_time=self.last,
        )


class SpoolRefusals:
    """Counts refusals until they are reported. Thread-safe."""

    def __init__(self) -> None:
        self.total = 0
        self._lock = threading.Lock()
        self._missing: RefusedEvents | None = None
        self._is_announced = False

    @property
    def is_pending(self) -> bool:
        return self._missing is not None

    def add(self, draft: Event, why: str, micros: int) -> Gap | None:
        """Count one. For the first since all was well there is a Gap, to be reported at once if that can be: it says
        from when on something is missing."""
        moment = moment_of(micros)
        with self._lock:
            self.total += 1
            self._missing = self._missing or RefusedEvents()
            self._missing.add(RefusedEvents(Counter((draft.family,)), moment, moment, why))
            if self._is_announced:
                return None
            self._is_announced = True
        detail = f"{why}; how much is missing is reported when the spool takes records again"
        return Gap(reason=GapReason.SPOOL_FAILED, detail=detail, first_time=moment)

    def take(self) -> RefusedEvents | None:
        """What is to be reported now that records are taken again."""
        with self._lock:
            missing, self._missing = self._missing, None
            return missing

    def mark_reported(self) -> None:
        """From now on all is well, unless more was noted meanwhile."""
        with self._lock:
            self._is_announced = self._missing is not None

    def put_back(self, missing: RefusedEvents) -> None:
        """It couldn't be reported after all."""
        with self._lock:
            if self._missing is not None:
                missing.add(self._missing)
            self._missing = missing
