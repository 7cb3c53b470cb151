"""Runs one forwarder: polls, makes whole events, sends them, and commits the offsets of what the target has.

Polling and sending take turns. So partitions go to another process only while nothing is being sent, and what was
polled of them is left to it: events of one key are never sent by two at a time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from typing import Final

from headwater.consumers.retrying import Retrier, StopRequested
from headwater.consumers.sources import BusRecord, EventSource, OffsetGap, SharedSource, SourceBatch
from headwater.errors import TerminalError, TransientError
from headwater.events.avro import Codec
from headwater.events.redaction import redact
from headwater.forwarders.api import BusEvent, Forwarder, PeriodicForwarder
from headwater.forwarders.assembling import PATIENCE, AssembledBatch, EventAssembler, merge_records
from headwater.forwarders.configuration import ForwarderSettings
from headwater.forwarders.dead_letters import ForwarderLetter, LetterBox, LetterState, Rejection
from headwater.forwarders.delivery import BatchDelivery, Pause, UnsentEvent, Waits
from headwater.forwarders.known_lineage import LineageCache
from headwater.forwarders.metrics import ForwarderMetrics
from headwater.forwarders.state import ForwarderState
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
_RETRY_SECONDS: Final = 1.0
"""How often somebody's wish to retry dead letters is looked for."""
_RETRIED_AT_ONCE: Final = 20
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
        patience: float = PATIENCE,
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
        self._letters = LetterBox(state)
        self._assembler = EventAssembler(state, lineage, self._letters, patience=patience)
        self._retrier = Retrier(self.metrics, self._stop)
        timeout = settings.config.timeout
        self._delivery = BatchDelivery(
            forwarder, self.metrics, timeout=timeout, pause=self._pause, still_wanted=self._still_ours, waits=waits
        )
        self._redelivery = BatchDelivery(
            forwarder, self.metrics, timeout=timeout, pause=self._pause, still_wanted=_unchanged, waits=waits
        )
        self._codec = Codec()
        self._limiter = RateLimiter(settings.config.rate)
        self._reached: dict[BusPartition, int] = {}
        """The next offset of each partition; what is before it is sent, a dead letter or waits for parts."""
        self._pending: dict[BusPartition, int] = {}
        """The same once the batch is done with that is being sent."""
        self._committed: dict[BusPartition, int] = {}
        self._commit_at = self._look_at = self._retry_at = self._tick_at = 0.0
        self._caught_up_at: datetime | None = None

    def stop(self) -> None:
        """Finish the call of `handle` that is under way, commit and end. Call it from the event loop's thread."""
        self._stop.set()

    async def run(self) -> None:
        """Run until stopped, or until the end of the bus if that was requested."""
        with suppress(StopRequested):
            await self._run()
        await self._commit()
        self.metrics.dead_letters_waiting = self._letters.count()

    async def _run(self) -> None:
        while not self._stop.is_set():
            await self._retry_letters()
            batch = await self._retrier.run("the bus", self._poll)
            await self._process(batch)
            is_quiet = not batch.next
            await self._look(is_quiet=is_quiet)
            await self._tick()
            if is_quiet and self._until_end and self.metrics.lag == 0:
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
        for gap in batch.gaps:
            _log_gap(self._settings.name, gap)
        assembled = await asyncio.to_thread(self._assemble, batch.records)
        self._pending = dict(batch.next)
        wanted = [each for each in assembled.events if self._is_wanted(each)]
        self.metrics.filtered += len(assembled.events) - len(wanted)
        self.metrics.partial = self._assembler.partial
        unsent: Sequence[UnsentEvent] = ()
        if wanted:
            await self._limiter.take(len(wanted), self._pause)
            unsent = await self._delivery.send(wanted)
        await asyncio.to_thread(self._settle, [*assembled.rejections, *map(self._rejection, unsent)])
        self._reached.update(self._pending)
        times = [each.append_time for each in batch.records if each.append_time]
        self.metrics.sent_until = max(times, default=self.metrics.sent_until)
        if time.monotonic() >= self._commit_at or not batch.next:
            await self._commit()

    def _assemble(self, records: Sequence[BusRecord]) -> AssembledBatch:
        if not records and self.metrics.outage is None:
            self._assembler.give_up_late()
        return self._assembler.add(records)

    def _settle(self, rejections: Sequence[Rejection]) -> None:
        """Keep what can't be sent, and what became of events with parts. Offsets are committed after it."""
        if rejections:
            count = self._letters.add(rejections)
            self.metrics.dead_letters += count
            _log_letters(self._settings.name, rejections)
        given_up, self._assembler.given_up = self._assembler.given_up, 0
        self.metrics.dead_letters += given_up
        self._assembler.confirm()

    def _rejection(self, unsent: UnsentEvent) -> Rejection:
        event = unsent.event.event
        return Rejection(
            unsent.reason, unsent.error, self._assembler.records_of(unsent.event), event.event_id, event.kind
        )

    def _is_wanted(self, each: BusEvent) -> bool:
        return self._settings.include.includes(each.event) and not self._settings.exclude.excludes(each.event)

    async def _commit(self) -> None:
        """Commit what is done with, without passing the first part of an event that isn't complete."""
        self._drop_lost()
        held = self._assembler.held()
        positions = {each: min(at, held.get(each, at)) for each, at in self._reached.items()}
        changed = {each: at for each, at in positions.items() if self._committed.get(each) != at}
        if changed:
            await asyncio.to_thread(self._source.done, changed)
            self._committed.update(changed)
        self._commit_at = time.monotonic() + _COMMIT_SECONDS

    def _drop_lost(self) -> None:
        """Forget partitions that another process reads now: it goes on where they were committed."""
        for partition in [each for each in {**self._reached, **self._pending} if not self._owns(each)]:
            self._reached.pop(partition, None)
            self._pending.pop(partition, None)
            self._committed.pop(partition, None)
            self._assembler.forget(partition)

    def _owns(self, partition: BusPartition) -> bool:
        return not isinstance(self._source, SharedSource) or self._source.owns(partition)

    def _still_ours(self, events: Sequence[BusEvent]) -> Sequence[BusEvent]:
        self._drop_lost()
        return [each for each in events if each.record.partition in self._pending]

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
        self._caught_up_at = asked_at if is_quiet and self.metrics.lag == 0 and not self.metrics.outage else None
        self.metrics.dead_letters_waiting = self._letters.count()

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

    async def _retry_letters(self) -> None:
        """Send the dead letters that somebody marked, in the order in which they became such."""
        if time.monotonic() < self._retry_at:
            return
        while letters := self._letters.letters(LetterState.RETRY, most=_RETRIED_AT_ONCE):
            await self.retry(letters)
        self._retry_at = time.monotonic() + _RETRY_SECONDS

    async def retry(self, letters: Sequence[ForwarderLetter]) -> None:
        """Send these dead letters. Those that can't be sent wait again."""
        failed: dict[int, str] = {}
        events: list[BusEvent] = []
        letter_of: dict[int, ForwarderLetter] = {}
        for letter in letters:
            found = self._event_of(letter)
            if isinstance(found, TerminalError):
                failed[letter.id] = str(found)
            else:
                letter_of[id(found)] = letter
                events.append(found)
        if events:
            for each in await self._redelivery.send(events):
                failed[letter_of[id(each.event)].id] = each.error
        sent = [each for each in letters if each.id not in failed]
        self._assembler.record_merged(each.event for each in sent if each.event and len(each.records) > 1)
        self._letters.settle((each.id for each in sent), failed)
        self.metrics.retried += len(sent)

    def _event_of(self, letter: ForwarderLetter) -> BusEvent | TerminalError:
        try:
            return BusEvent(merge_records(self._codec, letter.records), letter.records[-1])
        except TerminalError as e:
            return e


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


def _unchanged(events: Sequence[BusEvent]) -> Sequence[BusEvent]:
    return events


def _log_gap(name: str, gap: OffsetGap) -> None:
    fields = {"partition": gap.partition.number, "first": gap.first, "end": gap.end, "reason": gap.reason.value}
    _LOG.warning("%s: the bus lost records before they were read", name, extra={"headwater": fields})


def _log_letters(name: str, rejections: Sequence[Rejection]) -> None:
    for each in rejections[:10]:
        fields = {"reason": each.reason.value, "kind": each.kind, "error": each.error[:300]}
        _LOG.warning("%s: a dead letter", name, extra={"headwater": fields})
    if len(rejections) > 10:
        _LOG.warning("%s: %d more dead letters of the same batch", name, len(rejections) - 10)
