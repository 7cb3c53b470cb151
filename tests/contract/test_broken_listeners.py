"""Listeners that break their word, each in one way, and the case of the contract suites that finds it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from headwater.errors import TerminalError
from headwater.events.envelope import Event
from headwater.events.keys import PRODUCER
from headwater.spi import EventRecord, RecordBatch, SpoolPosition
from headwater.testing.listeners import BRIEF
from headwater.testing.memory import DurableMemoryListener, MemoryListener, MemoryTarget, RefusedError
from tests.kit.bus.memory_listeners import DurableMemoryListenerSuite as DurableSuite
from tests.kit.bus.memory_listeners import Hasty, Partitioned, Swallowing
from tests.kit.bus.memory_listeners import MemoryListenerSuite as PlainSuite

GRACE = 0.1
"""For listeners that take too long, so that their tests don't."""
TOO_LONG = BRIEF + 2 * GRACE


class Forgetful(MemoryListener):
    def on_event(self, event: Event) -> None:
        if event.sequence % 7:
            super().on_event(event)


class Backwards(MemoryListener):
    def close(self, timeout: float) -> bool:
        self.events.reverse()
        return super().close(timeout)


class Heedless(MemoryListener):
    def on_missed(self, count: int) -> None:
        pass


class Overstaying(MemoryListener):
    grace = GRACE

    def flush(self, timeout: float) -> None:
        super().flush(TOO_LONG if timeout == BRIEF else timeout)


class LingeringOn(MemoryListener):
    grace = GRACE

    def close(self, timeout: float) -> bool:
        time.sleep(timeout + 2 * GRACE if timeout == BRIEF else 0)
        return super().close(timeout)


class AlwaysDone(MemoryListener):
    def close(self, timeout: float) -> bool:
        super().close(timeout)
        return True


class NeverDone(MemoryListener):
    def close(self, timeout: float) -> bool:
        return super().close(timeout) and False


class EasilyOffended(MemoryListener):
    is_offended = False

    def on_event(self, event: Event) -> None:
        if self.is_offended:
            return
        try:
            super().on_event(event)
        except RefusedError:
            self.is_offended = True


class Nothing:
    def close(self, timeout: float) -> bool:
        return True


class Lying(DurableMemoryListener):
    """Says that it is through before it is."""

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        super().handle(RecordBatch(batch.records[:-1]))
        self._dealt_with = batch.end
        return batch.end


class Early(Partitioned):
    """Says that it is through with what it took, and tells the truth only in the end."""

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        super().handle(batch)
        return batch.end

    def flush(self, timeout: float) -> SpoolPosition | None:
        super().flush(timeout)
        return max(self._is_dealt_with, default=self._answer)


class Speechless(DurableMemoryListener):
    """Says nothing more once it has said all."""

    def flush(self, timeout: float) -> SpoolPosition | None:
        return super().flush(timeout) if timeout == 0 else None


class GoingBack(DurableMemoryListener):
    """Answers for the batch, not for all that it was handed."""

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        super().handle(batch)
        return batch.records[0].position

    def flush(self, timeout: float) -> SpoolPosition | None:
        answer = super().flush(timeout)
        return None if answer is None else SpoolPosition(10)


class OutOfOrder(Partitioned):
    """Answers with the highest acknowledgement, whatever is missing below it."""

    def _advance(self) -> None:
        self._answer = max(position for position, is_dealt_with in self._is_dealt_with.items() if is_dealt_with)


class Impatient(Partitioned):
    """Never waits in flush."""

    def flush(self, timeout: float) -> SpoolPosition | None:
        return super().flush(0)


class OverstayingDurable(DurableMemoryListener):
    grace = GRACE

    def flush(self, timeout: float) -> SpoolPosition | None:
        return super().flush(TOO_LONG if timeout == BRIEF else timeout)


class LookingTooLong(DurableMemoryListener):
    """Takes a look for a wait."""

    grace = GRACE

    def flush(self, timeout: float) -> SpoolPosition | None:
        if timeout == 0 and not self._waiting:
            return self._dealt_with
        return super().flush(timeout or TOO_LONG)


class LingeringOnDurable(DurableMemoryListener):
    grace = GRACE

    def close(self, timeout: float) -> bool:
        time.sleep(timeout + 2 * GRACE if timeout == BRIEF else 0)
        return super().close(timeout)


class NeverDoneDurable(DurableMemoryListener):
    def close(self, timeout: float) -> bool:
        return super().close(timeout) and False


class AlwaysDoneDurable(DurableMemoryListener):
    def close(self, timeout: float) -> bool:
        super().close(timeout)
        return True


class WithoutRecords(DurableMemoryListener):
    """Has forgotten what it gave up, and takes having nothing to do for being done."""

    def close(self, timeout: float) -> bool:
        super().close(timeout)
        return not self._waiting


class Once(DurableMemoryListener):
    """Takes what comes again after an error for a copy."""

    def __init__(self, target: MemoryTarget[EventRecord]) -> None:
        super().__init__(target)
        self._seen: set[SpoolPosition] = set()

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        fresh = [record for record in batch if record.position not in self._seen]
        self._seen |= {record.position for record in batch}
        if fresh:
            super().handle(RecordBatch(fresh))
        return batch.end


class Surrendering(DurableMemoryListener):
    """Takes what passes for what doesn't."""

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        try:
            return super().handle(batch)
        except RefusedError as e:
            raise TerminalError("the target is away") from e


class Shuffling(DurableMemoryListener):
    """Brings the last first."""

    def flush(self, timeout: float) -> SpoolPosition | None:
        last = self._waiting[-1].position if self._waiting else None
        self._waiting.reverse()
        super().flush(timeout)
        self._dealt_with = last or self._dealt_with
        return self._dealt_with


class Renaming(DurableMemoryListener):
    """Gives a copy an id of its own."""

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        ids = {record.event_id for record in self.records}
        return super().handle(RecordBatch([_renamed(record) if record.event_id in ids else record for record in batch]))


class Remembering(DurableMemoryListener):
    """Knows from the instance before where that one was."""

    def flush(self, timeout: float) -> SpoolPosition | None:
        return super().flush(timeout) or (self.records[-1].position if self.records else None)


class Shared(DurableMemoryListener):
    """Has one place for the positions of all spools."""

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        super().handle(batch)
        return self.flush(0)

    def flush(self, timeout: float) -> SpoolPosition | None:
        mine = super().flush(timeout)
        positions = [record.position for record in self.records]
        return max(positions) if positions and mine is not None else mine


class Choking(DurableMemoryListener):
    """Can't do with what it doesn't know."""

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        for record in batch:
            assert isinstance(record.event, Event), "what is this?"
        return super().handle(batch)


class PassingOver(DurableMemoryListener):
    """Drops what it doesn't know, and should pass it on."""

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        super().handle(RecordBatch([record for record in batch if isinstance(record.event, Event)]))
        return batch.end


def _renamed(record: EventRecord) -> EventRecord:
    other = str(UUID(int=1)).encode()
    return replace(
        record, headers=tuple((name, other if name == PRODUCER else value) for name, value in record.headers)
    )


Case = Callable[[Any], None]


class Simplifying(DurableMemoryListener):
    """Leaves out what it doesn't need itself."""

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        return super().handle(
            RecordBatch([_changed(each, headers=each.headers[:-2] + each.headers[-1:]) for each in batch])
        )


class Knowing(DurableMemoryListener):
    """Puts its own word for what it doesn't know."""

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        return super().handle(RecordBatch([_changed(each, headers=tuple(map(_known, each.headers))) for each in batch]))


class Narrow(DurableMemoryListener):
    """Has room for so much."""

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        return super().handle(RecordBatch([_changed(each, data=each.data[:65_535]) for each in batch]))


def _changed(record: EventRecord, **changes: Any) -> EventRecord:
    kept: dict[str, Any] = {"data": record.data, "headers": record.headers, **changes}
    return EventRecord(record.position, kept["data"], record.key, kept["headers"], record.decode)


def _known(header: tuple[str, bytes]) -> tuple[str, bytes]:
    name, value = header
    return (name, b"UNKNOWN") if name == "family" and value == b"LATER" else header


PLAIN: list[tuple[type[Any], Case, str]] = [
    (Nothing, PlainSuite.test_it_is_a_listener, "is missing"),
    (Forgetful, PlainSuite.test_what_it_received_is_there_after_a_flush, "never arrived"),
    (Forgetful, PlainSuite.test_closing_lets_nothing_fall, "never arrived"),
    (Backwards, PlainSuite.test_closing_lets_nothing_fall, "changed places"),
    (NeverDone, PlainSuite.test_closing_lets_nothing_fall, "close says that not all"),
    (Heedless, PlainSuite.test_it_says_what_it_missed, "doesn't know of 12"),
    (Overstaying, PlainSuite.test_it_keeps_to_its_time_when_nothing_answers, "flush took"),
    (LingeringOn, PlainSuite.test_it_keeps_to_its_time_when_nothing_answers, "(flush|close) took"),
    (AlwaysDone, PlainSuite.test_it_goes_on_after_an_error, "close said that all arrived"),
    (EasilyOffended, PlainSuite.test_it_goes_on_after_an_error, "what came after the error"),
]
DURABLE: list[tuple[type[Any], Case, str]] = [
    (Nothing, DurableSuite.test_it_is_a_durable_listener, "is missing"),
    (Lying, DurableSuite.test_a_flush_waits_until_what_was_delivered_is_there, "never arrived"),
    (Impatient, DurableSuite.test_a_flush_waits_until_what_was_delivered_is_there, "came back before its time"),
    (Shuffling, DurableSuite.test_a_flush_waits_until_what_was_delivered_is_there, "changed places"),
    (Early, DurableSuite.test_an_answer_is_true_at_once, "ran ahead of what arrived"),
    (Hasty, DurableSuite.test_an_answer_is_true_at_once, "was never handed over"),
    (Speechless, DurableSuite.test_a_flush_waits_until_what_was_delivered_is_there, "answered None after 300"),
    (GoingBack, DurableSuite.test_batches_follow_each_other_without_waiting, "answered 10 after"),
    (OutOfOrder, DurableSuite.test_an_answer_is_true_at_once, "ran ahead of what arrived"),
    (NeverDoneDurable, DurableSuite.test_closing_waits_for_what_was_delivered, "close says that not all"),
    (Remembering, DurableSuite.test_an_instance_begins_knowing_nothing, "before anything was handed over"),
    (Shared, DurableSuite.test_two_spools_have_nothing_to_do_with_each_other, "never handed over"),
    (Renaming, DurableSuite.test_what_comes_again_after_a_restart_is_the_same, "nobody emitted these"),
    (Swallowing, DurableSuite.test_nothing_is_lost_where_the_target_refuses, "never arrived"),
    (Once, DurableSuite.test_nothing_is_lost_where_the_target_refuses, "never arrived"),
    (Surrendering, DurableSuite.test_nothing_is_lost_where_the_target_refuses, "the target is away"),
    (AlwaysDoneDurable, DurableSuite.test_closing_does_not_say_that_what_was_refused_is_dealt_with, "never arrived"),
    (WithoutRecords, DurableSuite.test_closing_does_not_say_that_what_was_refused_is_dealt_with, "never arrived"),
    (OverstayingDurable, DurableSuite.test_it_goes_on_where_an_answer_comes_late, "flush took"),
    (LookingTooLong, DurableSuite.test_it_goes_on_where_an_answer_comes_late, "(handle|flush) took"),
    (LingeringOnDurable, DurableSuite.test_closing_keeps_to_its_time_when_nothing_answers, "(flush|close) took"),
    (AlwaysDoneDurable, DurableSuite.test_closing_keeps_to_its_time_when_nothing_answers, "never arrived"),
    (Choking, DurableSuite.test_an_event_of_a_later_version_stops_nothing, "what is this"),
    (PassingOver, DurableSuite.test_an_event_of_a_later_version_stops_nothing, "never arrived"),
    (Simplifying, DurableSuite.test_events_arrive_as_they_were, "was changed on its way"),
    (Knowing, DurableSuite.test_what_is_not_known_here_arrives_as_it_was, "was changed on its way"),
    (Narrow, DurableSuite.test_a_large_event_arrives, "was changed on its way"),
]


def _id(value: Any) -> str | None:
    return getattr(value, "__name__", "")


@pytest.mark.parametrize(("listener", "case", "words"), [*PLAIN, *DURABLE], ids=_id)
@pytest.mark.slow
def test_a_listener_that_breaks_its_word_is_found(listener: type[Any], case: Case, words: str) -> None:
    base: type[Any] = PlainSuite if (listener, case, words) in PLAIN else DurableSuite

    class Suite(base):  # type: ignore[misc]  # the base is a parameter
        grace = getattr(listener, "grace", base.grace)

        def create(self) -> Any:
            return listener() if listener is Nothing else listener(self.target)

    suite = Suite()
    suite.target = MemoryTarget()
    with pytest.raises((AssertionError, TerminalError), match=words):
        case(suite)


@pytest.mark.parametrize("suite", [PlainSuite, DurableSuite])
def test_every_case_finds_somebody(suite: type[Any]) -> None:
    cases = {name for name in dir(suite) if name.startswith("test_")}
    assert cases == {case.__name__ for _, case, _ in (PLAIN if suite is PlainSuite else DURABLE)}
