"""Emits events: stamps a draft, appends it to the spool and offers it to queues; reports what failed as Gaps.

Events that the spool refused, until a Gap reports them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from headwater.events.clock import moment_of
from headwater.events.envelope import Event, EventFamily
from headwater.events.health import Gap, GapReason
from headwater.events.names import JobName
from headwater.events.producer import NotAppendedError, Producer
from headwater.journal import StorageError
from headwater.listeners.bus.durations import CALL_BOUNDS, DurationRecorder
from headwater.listeners.bus.listener_errors import describe_error
from headwater.listeners.bus.report import IntakeReport
from headwater.listeners.bus.spool import Spool, SpoolFullError


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


_LOG = logging.getLogger(__name__)
_MAX_PENDING_GAPS = 1_000

Offer = Callable[[Event, int], None]
"""Takes an event that is in the spool, with its size, in the order of sequence numbers. Neither waits nor raises."""


class EventEmitter:
    """Thread-safe; no method raises."""

    def __init__(self, producer: Producer, spool: Spool | None, offer: Offer) -> None:
        self.about: tuple[JobName | None, UUID | None] = (None, None)
        """The job and run of Gaps that have none of their own."""
        self.refused = SpoolRefusals()
        self.broken: Counter[str] = Counter()
        """Drafts that couldn't become an event, by kind."""
        self.families: Counter[EventFamily] = Counter()
        """Events emitted, by family. This and the following counters change under the producer's lock."""
        self.gaps: Counter[GapReason] = Counter()
        self.missed: Counter[GapReason] = Counter()
        """Events that those Gaps report missing, as far as they know."""
        self.append_seconds = DurationRecorder(CALL_BOUNDS)
        self.emit_seconds = DurationRecorder(CALL_BOUNDS)
        self._producer = producer
        self._spool = spool
        self._offer = offer
        self._writing = threading.Lock()
        self._noting = threading.Lock()
        self._pending_gaps: deque[Gap] = deque(maxlen=_MAX_PENDING_GAPS)

    @property
    def emitted(self) -> int:
        return self.families.total()

    @property
    def spool(self) -> Spool | None:
        return self._spool

    def take_spool(self) -> Spool | None:
        """Detach the spool and return it: later events are appended nowhere."""
        with self._writing:
            spool, self._spool = self._spool, None
            return spool

    def emit(self, draft: Event) -> tuple[Event, ...]:
        """Return what was stamped and appended; nothing if the spool refused it."""
        began = time.perf_counter()
        emitted = self._emit(draft)
        if emitted and (self.refused.is_pending or self._pending_gaps):
            self._emit_missed()
        took = time.perf_counter() - began
        with self._noting:
            self.emit_seconds.record(took)
        return emitted

    def report(self, spool_bytes: int) -> IntakeReport:
        """Report what came in so far. Thread-safe, and never waits."""
        return IntakeReport(
            emitted={family.value: count for family, count in list(self.families.items())},
            broken=dict(self.broken),
            gaps={reason.value: count for reason, count in list(self.gaps.items())},
            missed={reason.value: count for reason, count in list(self.missed.items())},
            spool_bytes=spool_bytes,
            append=self.append_seconds.snapshot,
            emit=self.emit_seconds.snapshot,
        )

    def emit_own_gap(self, gap: Gap) -> None:
        """Emit a Gap of the bus itself, now or as soon as the spool takes records again."""
        own = self._attribute_gap(gap)
        if not self._emit(own, is_own=True):
            self._pending_gaps.append(own)

    def _emit(self, draft: Event, *, reserved: bool = False, is_own: bool = False) -> tuple[Event, ...]:
        emitted: list[Event] = []

        def append(event: Event, data: bytes) -> None:
            self._write(event, data, reserved=reserved)
            emitted.append(event)
            self._count(event)
            self._offer(event, len(data))

        try:
            self._producer.emit(draft, append)
        except (NotAppendedError, StorageError) as e:
            if not is_own:
                self._refuse(draft, e)
        except Exception as e:  # noqa: BLE001 - a draft can hold anything; reported, never raised
            self._note_broken(draft, e, is_own=is_own)
        return tuple(emitted)

    def _count(self, event: Event) -> None:
        self.families[event.family] += 1
        if isinstance(event, Gap):
            self.gaps[event.reason] += 1
            self.missed[event.reason] += event.missed or 0

    def _write(self, event: Event, data: bytes, *, reserved: bool) -> None:
        with self._writing:
            if self._spool is not None:
                began = time.perf_counter()
                self._spool.append(event, data, reserved=reserved)
                self.append_seconds.record(time.perf_counter() - began)

    def _refuse(self, draft: Event, error: NotAppendedError | StorageError) -> None:
        announcement = self.refused.add(draft, describe_error(error), self._producer.clock.now())
        if announcement is None:
            return
        _LOG.warning("the spool takes no records just now: %s", error)
        if isinstance(error, SpoolFullError):
            self._emit(self._attribute_gap(announcement), reserved=True, is_own=True)

    def _note_broken(self, draft: Event, error: Exception, *, is_own: bool) -> None:
        """Count a draft that couldn't become an event, and emit a Gap for it."""
        self.broken[draft.kind] += 1
        detail = f"a {draft.kind} couldn't be emitted: {describe_error(error)}"
        _LOG.warning("%s", detail)
        if not is_own:
            envelope = {"job": draft.job, "run": draft.run, "statement": draft.statement}
            gap = Gap(reason=GapReason.CAPTURE_FAILED, detail=detail, missed_family=draft.family, missed=1)
            self.emit_own_gap(gap.model_copy(update=envelope))

    def _emit_missed(self) -> None:
        """Emit the Gaps that couldn't be emitted before."""
        missing = self.refused.take()
        if missing is not None:
            if self._emit(self._attribute_gap(missing.gap()), is_own=True):
                self.refused.mark_reported()
            else:
                self.refused.put_back(missing)
        for _ in range(len(self._pending_gaps)):
            self._emit_pending_gap()

    def _emit_pending_gap(self) -> None:
        try:
            gap = self._pending_gaps.popleft()
        except IndexError:  # another thread was quicker
            return
        self.emit_own_gap(gap)

    def _attribute_gap(self, gap: Gap) -> Gap:
        if gap.job is not None or gap.run is not None:
            return gap
        job, run = self.about
        return gap.model_copy(update={"job": job, "run": run})
