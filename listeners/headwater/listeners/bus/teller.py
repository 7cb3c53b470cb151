"""Telling: a draft becomes an event, goes into spool and queues; what doesn't is counted, and made up for."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from uuid import UUID

from headwater.events.envelope import Event, Family
from headwater.events.health import Gap, GapReason
from headwater.events.names import JobName
from headwater.events.producer import NotAppendedError, Producer
from headwater.journal import StorageError
from headwater.listeners.bus.durations import CALLS, Stopwatch
from headwater.listeners.bus.errors import words_of
from headwater.listeners.bus.refused import Refused
from headwater.listeners.bus.report import IntakeReport
from headwater.listeners.bus.spool import Spool, SpoolFullError

_LOG = logging.getLogger(__name__)
_UNTOLD_GAPS = 1_000

Offer = Callable[[Event, int], None]
"""Takes an event that is in the spool, and its size, in the order of sequences. Doesn't wait, and doesn't raise."""


class Teller:
    """For any thread; nothing here raises."""

    def __init__(self, producer: Producer, spool: Spool | None, offer: Offer) -> None:
        self.about: tuple[JobName | None, UUID | None] = (None, None)
        """The job and run of Gaps that nothing else gives one."""
        self.refused = Refused()
        self.broken: Counter[str] = Counter()
        """Drafts by kind that no event could be made of."""
        self.families: Counter[Family] = Counter()
        """Events that were told. This, and what follows, is counted under the producer's lock."""
        self.gaps: Counter[GapReason] = Counter()
        self.missed: Counter[GapReason] = Counter()
        """How many events those say are missing, where they know."""
        self.append_seconds = Stopwatch(CALLS)
        self.tell_seconds = Stopwatch(CALLS)
        self._producer = producer
        self._spool = spool
        self._offer = offer
        self._writing = threading.Lock()
        self._noting = threading.Lock()
        self._untold: deque[Gap] = deque(maxlen=_UNTOLD_GAPS)

    @property
    def told(self) -> int:
        return self.families.total()

    @property
    def spool(self) -> Spool | None:
        return self._spool

    def take_spool(self) -> Spool | None:
        """From now on nothing goes into a spool."""
        with self._writing:
            spool, self._spool = self._spool, None
            return spool

    def tell(self, draft: Event) -> tuple[Event, ...]:
        """What was stamped and appended; nothing where the spool refused it."""
        began = time.perf_counter()
        told = self._emit(draft)
        if told and (self.refused.is_pending or self._untold):
            self._make_up()
        took = time.perf_counter() - began
        with self._noting:
            self.tell_seconds.note(took)
        return told

    def report(self, spool_bytes: int) -> IntakeReport:
        """What came in so far; any thread may ask, and waits for nobody."""
        return IntakeReport(
            told={family.value: count for family, count in list(self.families.items())},
            broken=dict(self.broken),
            gaps={reason.value: count for reason, count in list(self.gaps.items())},
            missed={reason.value: count for reason, count in list(self.missed.items())},
            spool_bytes=spool_bytes,
            append=self.append_seconds.so_far,
            tell=self.tell_seconds.so_far,
        )

    def tell_own(self, gap: Gap) -> None:
        """A Gap that the bus itself has to tell, now or as soon as that can be."""
        own = self._attributed(gap)
        if not self._emit(own, is_own=True):
            self._untold.append(own)

    def _emit(self, draft: Event, *, reserved: bool = False, is_own: bool = False) -> tuple[Event, ...]:
        told: list[Event] = []

        def append(event: Event, data: bytes) -> None:
            self._write(event, data, reserved=reserved)
            told.append(event)
            self._count(event)
            self._offer(event, len(data))

        try:
            self._producer.emit(draft, append)
        except (NotAppendedError, StorageError) as e:
            if not is_own:
                self._refuse(draft, e)
        except Exception as e:  # noqa: BLE001 - a draft can hold anything; told, never raised
            self._note_broken(draft, e, is_own=is_own)
        return tuple(told)

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
                self.append_seconds.note(time.perf_counter() - began)

    def _refuse(self, draft: Event, error: NotAppendedError | StorageError) -> None:
        announcement = self.refused.note(draft, words_of(error), self._producer.clock.now())
        if announcement is None:
            return
        _LOG.warning("the spool takes no records just now: %s", error)
        if isinstance(error, SpoolFullError):
            self._emit(self._attributed(announcement), reserved=True, is_own=True)

    def _note_broken(self, draft: Event, error: Exception, *, is_own: bool) -> None:
        """A fault of ours, or more than any event can hold."""
        self.broken[draft.kind] += 1
        detail = f"a {draft.kind} can't be told: {words_of(error)}"
        _LOG.warning("%s", detail)
        if not is_own:
            envelope = {"job": draft.job, "run": draft.run, "statement": draft.statement}
            gap = Gap(reason=GapReason.CAPTURE_FAILED, detail=detail, missed_family=draft.family, missed=1)
            self.tell_own(gap.model_copy(update=envelope))

    def _make_up(self) -> None:
        """Tell what couldn't be told before."""
        missing = self.refused.take()
        if missing is not None:
            if self._emit(self._attributed(missing.gap()), is_own=True):
                self.refused.told()
            else:
                self.refused.put_back(missing)
        for _ in range(len(self._untold)):
            self._tell_one_more()

    def _tell_one_more(self) -> None:
        try:
            gap = self._untold.popleft()
        except IndexError:  # another thread was quicker
            return
        self.tell_own(gap)

    def _attributed(self, gap: Gap) -> Gap:
        if gap.job is not None or gap.run is not None:
            return gap
        job, run = self.about
        return gap.model_copy(update={"job": job, "run": run})
