"""Runs one forwarder: polls, decodes events, sends them, and commits the offsets of what the target has.

Polling and sending take turns. So partitions go to another process only while nothing is being sent, and what was
polled of them is left to it: events of one key are never sent by two at a time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from typing import Final

from headwater.consumers.retrying import Retrier, StopRequested
from headwater.consumers.sources import BusRecord, EventSource, OffsetGap, SharedSource, SourceBatch
from headwater.consumers.sources.gap_events import gap_event
from headwater.errors import TransientError
from headwater.events.avro import Codec
from headwater.events.keys import key_of
from headwater.events.redaction import redact
from headwater.forwarders.api import BusEvent, Forwarder, PeriodicForwarder
from headwater.forwarders.configuration import ForwarderSettings
from headwater.forwarders.dead_letters import WAITING_STATES, ForwarderBatch, LetterRetry, Rejection, decode_records
from headwater.forwarders.delivery import BatchDelivery, Pause, Waits
from headwater.forwarders.isolation import DeliveryResult, UnsentEvent
from headwater.forwarders.known_lineage import LineageCache
from headwater.forwarders.metrics import ForwarderMetrics
from headwater.forwarders.state import ForwarderState
from headwater.forwarders.status import ForwarderProgress
from headwater.lineage.bulk import BusPartition

_LOG: Final = logging.getLogger(__name__)
_IDLE_SECONDS: Final = 0.5
"""How long a poll waits for the first record."""
_COMMIT_SECONDS: Final = 1.0
"""How often offsets are committed while events come. After a crash so much is sent twice, and a batch."""
_REST_SECONDS: Final = 2.0
"""How often the bus hears of a forwarder that waits for its target."""
_LOOK_SECONDS: Final = 5.0
"""How often the lag is measured, which asks a broker."""
_TICK_SECONDS: Final = 1.0


class ForwarderRunner:
    """Runs one forwarder on an event loop. It calls the source from one task at a time."""

    def __init__(
        self,
        forwarder: Forwarder,
        source: EventSource,
        state: ForwarderState,
        settings: ForwarderSettings,
        *,
        lineage: LineageCache,
        metrics: ForwarderMetrics | None = None,
        until_end: bool = False,
        waits: Waits | None = None,
        idle: float = _IDLE_SECONDS,
    ) -> None:
        """`lineage` is the one that the forwarder was created with."""
        self.metrics: Final = metrics or ForwarderMetrics(settings.name)
        self._forwarder = forwarder
        self._source = source
        self._settings = settings
        self._until_end = until_end
        self._idle = idle
        self._stop = asyncio.Event()
        self._letters = state.letters
        self._bus = (source.kind, source.topic)
        self._progress = ForwarderProgress(state)
        self._lineage = lineage
        self._retrier = Retrier(self.metrics, self._stop)
        timeout = settings.config.timeout
        self._delivery = BatchDelivery(
            forwarder,
            self.metrics,
            timeout=timeout,
            pause=self._pause,
            still_wanted=self._still_ours,
            waits=waits,
            isolate_after=settings.config.isolate_after,
        )
        redelivery = BatchDelivery(
            forwarder, self.metrics, timeout=timeout, pause=self._pause, still_wanted=_pass_through, waits=waits
        )
        self._retry = LetterRetry(self._letters, redelivery, self.metrics)
        self._codec = Codec()
        self._limiter = RateLimiter(settings.config.rate)
        self._reached: dict[BusPartition, int] = {}
        """The next offset of each partition; what is before it is sent or a dead letter."""
        self._pending: dict[BusPartition, int] = {}
        """The same once the batch is done with that is being sent."""
        self._lost: set[int] = set()
        """The Gap events, by `id`, of what the bus lost: they aren't on it, so nobody else reads them."""
        self._postponed: list[BusEvent] = []
        """Events that the target failed on. They go with the next batch."""
        self._committed: dict[BusPartition, int] = {}
        self._commit_at = self._look_at = self._tick_at = 0.0
        self._caught_up_at: datetime | None = None

    def stop(self) -> None:
        """Finish the call of `handle` that is under way, commit and end. Call it from the event loop's thread."""
        self._stop.set()

    async def run(self) -> None:
        """Run until stopped, or until the end of the bus if that was requested."""
        with suppress(StopRequested):
            await self._run()
        await self._commit()
        self.metrics.dead_letters_waiting = self._letters.count_dead_letters(*WAITING_STATES)

    async def _run(self) -> None:
        while not self._stop.is_set():
            await self._retry.run_if_due()
            batch = await self._retrier.run("the bus", self._poll)
            await self._process(batch)
            is_quiet = not batch.next
            await self._look(is_quiet=is_quiet)
            await self._tick()
            is_waiting = self._postponed or self._retry.has_more
            if is_quiet and self._until_end and self.metrics.lag == 0 and not is_waiting:
                return

    def _poll(self) -> SourceBatch:
        return self._source.poll(self._at_once(), self._idle)

    def _at_once(self) -> int:
        """Return how many records are polled: no more than may be sent in a second."""
        rate = self._settings.config.rate
        most = self._settings.config.batch
        return most if rate is None else max(1, min(most, int(rate)))

    async def _process(self, batch: SourceBatch) -> None:
        self.metrics.has_polled = True
        self.metrics.outage = getattr(self._source, "outage", None)
        self.metrics.polled += len(batch.records)
        if batch.records or self.metrics.outage:
            self._caught_up_at = None
        lost = await asyncio.to_thread(self._report_lost, batch.gaps) if batch.gaps else []
        decoded = await asyncio.to_thread(self._decode, batch.records)
        self._pending = dict(batch.next)
        self._lost = {id(each) for each in lost} | {id(each) for each in self._postponed if id(each) in self._lost}
        events = [*lost, *decoded.events]
        wanted = [event for event in events if self._is_wanted(event)]
        self.metrics.filtered += len(events) - len(wanted)
        result = DeliveryResult()
        postponed = self._still_ours(self._postponed)
        if wanted or postponed:
            await self._limiter.take(len(wanted), self._pause)
            result = await self._delivery.send([*postponed, *wanted], has_postponed=bool(postponed))
        self._postponed = result.postponed
        self.metrics.postponed = len(self._postponed)
        await asyncio.to_thread(self._settle, [*decoded.rejections, *map(self._rejection, result.unsent)])
        self._reached.update(self._pending)
        times = [record.append_time for record in batch.records if record.append_time]
        self.metrics.sent_until = max(times, default=self.metrics.sent_until)
        if time.monotonic() >= self._commit_at or not batch.next:
            await self._commit()

    def _decode(self, records: Sequence[BusRecord]) -> ForwarderBatch:
        return decode_records(self._codec, records, self._lineage)

    def _settle(self, rejections: Sequence[Rejection]) -> None:
        """Keep what can't be sent. Offsets are committed after it."""
        if rejections:
            self._letters.add_dead_letters(letter for one in rejections for letter in one.letters(*self._bus))
            self.metrics.dead_letters += len(rejections)
            _log_letters(self._settings.name, rejections)

    def _rejection(self, unsent: UnsentEvent) -> Rejection:
        event = unsent.event.event
        return Rejection(unsent.reason, unsent.error, (unsent.event.record,), event.event_id, event.kind)

    def _is_wanted(self, each: BusEvent) -> bool:
        return self._settings.wants(each.event)

    async def _commit(self) -> None:
        """Commit what is done with, without passing an event that is postponed."""
        self._drop_lost()
        held = self._held()
        positions = {each: min(at, held.get(each, at)) for each, at in self._reached.items()}
        changed = {each: at for each, at in positions.items() if self._committed.get(each) != at}
        if changed:
            await asyncio.to_thread(self._confirm, changed)
            self._committed.update(changed)
        self._commit_at = time.monotonic() + _COMMIT_SECONDS

    def _confirm(self, positions: Mapping[BusPartition, int]) -> None:
        self._progress.record_positions(positions)
        self._source.done(positions)

    def _held(self) -> dict[BusPartition, int]:
        """Return the offset of each partition that may not be passed yet."""
        held: dict[BusPartition, int] = {}
        for each in self._postponed:
            partition, offset = each.record.partition, each.record.offset
            held[partition] = min(offset, held.get(partition, offset))
        return held

    def _report_lost(self, gaps: Sequence[OffsetGap]) -> list[BusEvent]:
        """Record what the bus lost, and return a Gap for each range, which is sent before what comes behind it."""
        for gap in gaps:
            _log_gap(self._settings.name, gap)
            self.metrics.lost += max(0, (gap.end or gap.first) - gap.first)
        self._progress.record_lost(gaps)
        return [self._gap_event(each) for each in gaps]

    def _gap_event(self, gap: OffsetGap) -> BusEvent:
        event = gap_event(gap, self._source.topic, reader=self._settings.group)
        return BusEvent(event, BusRecord(self._codec.encode(event), gap.partition, gap.first, None, key_of(event)))

    def _drop_lost(self) -> None:
        """Forget partitions that another process reads now: it goes on where they were committed."""
        sent = {each.record.partition: 0 for each in self._postponed}
        for partition in [each for each in {**self._reached, **self._pending, **sent} if not self._owns(each)]:
            self._reached.pop(partition, None)
            self._pending.pop(partition, None)
            self._committed.pop(partition, None)
            self._postponed = [each for each in self._postponed if each.record.partition != partition]

    def _owns(self, partition: BusPartition) -> bool:
        return not isinstance(self._source, SharedSource) or self._source.owns(partition)

    def _still_ours(self, events: Sequence[BusEvent]) -> Sequence[BusEvent]:
        self._drop_lost()
        owned = {partition for partition in {event.record.partition for event in events} if self._owns(partition)}
        return [event for event in events if event.record.partition in owned or id(event) in self._lost]

    async def _pause(self, seconds: float) -> None:
        """Wait, and stay a member of the group. Raises StopRequested."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.metrics.beat()
            with suppress(TransientError):  # the next poll meets it too
                await asyncio.to_thread(self._source.rest)
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stop.wait(), min(left, _REST_SECONDS))
                raise StopRequested
            await self._look(is_quiet=False)

    async def _look(self, *, is_quiet: bool) -> None:
        if time.monotonic() < self._look_at and not (is_quiet and self._until_end):
            return
        self._look_at = time.monotonic() + _LOOK_SECONDS
        asked_at = datetime.now(timezone.utc)
        self.metrics.lag = await asyncio.to_thread(self._source.lag)
        is_behind = bool(self.metrics.lag != 0 or self.metrics.outage or self._postponed)
        self._caught_up_at = asked_at if is_quiet and not is_behind else None
        self.metrics.dead_letters_waiting = self._letters.count_dead_letters(*WAITING_STATES)

    async def _tick(self) -> None:
        if not isinstance(self._forwarder, PeriodicForwarder) or time.monotonic() < self._tick_at:
            return
        try:
            await asyncio.wait_for(self._forwarder.tick(self._caught_up_at), self._settings.config.timeout)
        except Exception as e:  # noqa: BLE001 - it is a plug-in
            words = str(redact(f"{type(e).__name__}: {e}"))
            if words != self.metrics.last_error:
                _LOG.warning("%s failed between batches: %s", self._settings.name, words)
            self.metrics.record_error(words)
        self._tick_at = time.monotonic() + _TICK_SECONDS


class RateLimiter:
    """Lets at most so many events a second through."""

    def __init__(self, rate: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._free_at = 0.0

    async def take(self, count: int, pause: Pause) -> None:
        """Wait until so many may be sent."""
        if self._rate is None:
            return
        now = self._clock()
        wait = self._free_at - now
        self._free_at = max(now, self._free_at) + count / self._rate
        if wait > 0:
            await pause(wait)


def _pass_through(events: Sequence[BusEvent]) -> Sequence[BusEvent]:
    return events


def _log_gap(name: str, gap: OffsetGap) -> None:
    fields = {"partition": gap.partition.number, "first": gap.first, "end": gap.end, "reason": gap.reason.value}
    _LOG.warning("%s: the bus lost records before they were read", name, extra={"headwater": fields})


def _log_letters(name: str, rejections: Sequence[Rejection]) -> None:
    for rejection in rejections[:10]:
        fields = {"reason": rejection.reason.value, "kind": rejection.kind, "error": rejection.error[:300]}
        _LOG.warning("%s: a dead letter", name, extra={"headwater": fields})
    if len(rejections) > 10:
        _LOG.warning("%s: %d more dead letters of the same batch", name, len(rejections) - 10)
