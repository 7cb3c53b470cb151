"""What every listener must do, as test classes: subclass one, and say how your listener and its target are handled.

    class TestMine(DurableListenerContract):
        def create(self): return MyListener(...)
        def delivered(self, listener): return [event.event_id for event in everything_in_my_system()]
        def refusing(self): return my_server_stopped()
        def stalling(self): return my_server_paused()

The suites need `pytest`. More cases will be added within a major version: a listener that keeps the words of
`headwater.spi` passes them.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import Any, ClassVar, Generic, TypeVar

from headwater.errors import TransientError
from headwater.events.avro import Codec, UnknownEvent, current_schema
from headwater.events.envelope import Event, EventId
from headwater.events.keys import headers_of, key_of
from headwater.spi import CALL_SECONDS, DurableListener, EventRecord, Listener, RecordBatch, SpoolPosition
from headwater.spi.adapters import adapt_listener
from headwater.testing.examples import EXAMPLES

PATIENCE = 100.0
"""Seconds that a contract waits for what must come."""
BRIEF = 0.2
"""Seconds that it gives where nothing can come."""

L = TypeVar("L", Listener, DurableListener)


def record(position: int, event: Event) -> EventRecord:
    """The event as it lies in a spool."""
    headers = headers_of(event, current_schema(type(event)).fingerprint)
    return EventRecord(SpoolPosition(position), Codec().encode(event), key_of(event), headers, _decoded)


def batch(events: Iterable[Event], first: int = 10, step: int = 10) -> RecordBatch:
    """The events as they lie in a spool from that position on; positions that others have lie in between."""
    return RecordBatch(tuple(record(at, event) for at, event in zip(count(first, step), events, strict=False)))


def from_the_future(known: EventRecord) -> EventRecord:
    """The same as a later version of headwater would have written it, of a kind and in a family that isn't known."""
    headers = tuple(
        (name, {"kind": b"InventedLater", "family": b"LATER"}.get(name, value)) for name, value in known.headers
    )
    return EventRecord(known.position, known.data[:2] + b"unheard!" + known.data[10:], known.key, headers, _decoded)


class _Contract(Generic[L]):
    """What both kinds of listeners are asked for."""

    ordered: ClassVar[bool] = True
    """Whether the target knows an order: then events of one key (`headwater.events.keys.key_of`) arrive in theirs."""
    grace: ClassVar[float] = 15.0
    """Seconds by which a call may overstay its time: on a busy machine a thread that is awake waits for a processor,
    for several seconds where disks stall too. So give your listener limits of its own (for connecting, say) that are
    well above: one that waits for those instead of keeping to its time is found by that."""

    def create(self) -> L:
        """A new listener on the same target as the ones before it in the same test."""
        raise AssertionError("a suite says how its listener is made")

    def delivered(self, listener: Any) -> list[EventId]:
        """What has arrived at the target, in order; copies too. Also of a listener that is closed."""
        raise AssertionError("a suite says what its listener delivered")

    def refusing(self) -> AbstractContextManager[Any]:
        """Inside it the target is away, or refuses everything. A target that can't be so does nothing here."""
        raise AssertionError("a suite says how its target is made to refuse")

    def stalling(self) -> AbstractContextManager[Any]:
        """Inside it the target takes what comes and never answers. A target that can't be so does nothing here."""
        raise AssertionError("a suite says how its target is made to give no answer")

    def assert_arrived(self, listener: Any, events: Iterable[Event | EventRecord]) -> None:
        """All of them, nothing else, and in order as far as one is promised."""
        expected = {event.event_id: event.key if isinstance(event, EventRecord) else key_of(event) for event in events}
        arrived = list(dict.fromkeys(self.delivered(listener)))  # the first copy of each
        assert not (lost := expected.keys() - set(arrived)), f"never arrived: {', '.join(map(str, lost))}"
        assert not (made_up := set(arrived) - expected.keys()), f"nobody emitted these: {', '.join(map(str, made_up))}"
        if self.ordered:
            assert _by_key(arrived, expected) == _by_key(expected, expected), "events of one key changed places"

    def assert_closes(self, listener: L) -> None:
        """Where all is well with the target, and there is time, everything is dealt with."""
        with self.within(PATIENCE, "close"):
            is_done = listener.close(PATIENCE)
        assert is_done is not False, "all is well with the target, and close says that not all is dealt with"

    @contextmanager
    def within(self, seconds: float, what: str) -> Generator[None]:
        began = time.monotonic()
        yield
        took = time.monotonic() - began
        assert took <= seconds + self.grace, f"{what} took {took:.1f} s where {seconds:.1f} were given"


class ListenerContract(_Contract[Listener]):
    """For plain listeners."""

    def missed(self, listener: Any) -> int:
        """How many missed events were reported to the target."""
        raise AssertionError("a suite says what its target knows of missed events")

    def test_it_is_a_listener(self) -> None:
        listener = self.create()
        assert isinstance(listener, Listener), "a method of headwater.spi.Listener is missing"
        self.assert_closes(listener)

    def test_what_it_received_is_there_after_a_flush(self) -> None:
        listener = self._listener_with(EXAMPLES)
        listener.flush(PATIENCE)
        self.assert_arrived(listener, EXAMPLES)
        self.assert_closes(listener)

    def test_closing_lets_nothing_fall(self) -> None:
        listener = self._listener_with(EXAMPLES)
        self.assert_closes(listener)
        self.assert_arrived(listener, EXAMPLES)

    def test_it_says_what_it_missed(self) -> None:
        listener = self.create()
        listener.on_missed(7)
        listener.on_event(EXAMPLES[0])
        listener.on_missed(5)
        self.assert_closes(listener)
        assert self.missed(listener) == 12, "7 and 5 events were missed, and the target doesn't know of 12"
        self.assert_arrived(listener, EXAMPLES[:1])

    def test_it_keeps_to_its_time_when_nothing_answers(self) -> None:
        listener = self.create()
        with self.stalling():
            with self.within(CALL_SECONDS, "on_event"):
                _try(lambda: listener.on_event(EXAMPLES[0]))
            with self.within(BRIEF, "flush"):
                _try(lambda: listener.flush(BRIEF))
            with self.within(BRIEF, "close"):
                is_done = listener.close(BRIEF)
        if is_done:
            self.assert_arrived(listener, EXAMPLES[:1])

    def test_it_goes_on_after_an_error(self) -> None:
        listener = self.create()
        with self.refusing():
            _try(lambda: listener.on_event(EXAMPLES[0]))
            _try(lambda: listener.flush(BRIEF))
        listener.on_event(EXAMPLES[1])
        is_done = listener.close(PATIENCE)
        arrived = set(self.delivered(listener))
        assert EXAMPLES[1].event_id in arrived, "what came after the error didn't arrive"
        assert EXAMPLES[0].event_id in arrived or not is_done, "close said that all arrived, and it didn't"

    def _listener_with(self, events: Iterable[Event]) -> Listener:
        listener = self.create()
        for event in events:
            listener.on_event(event)
        return listener


class DurableListenerContract(_Contract[DurableListener]):
    """For durable listeners."""

    passes_unknown_on: ClassVar[bool] = True
    """Whether an event of a kind that isn't known here arrives too; a store has nowhere to put it."""

    def test_it_is_a_durable_listener(self) -> None:
        listener = self.create()
        assert isinstance(listener, DurableListener), "a method of headwater.spi.DurableListener is missing"
        self.assert_closes(listener)

    def test_a_flush_waits_until_what_was_delivered_is_there(self) -> None:
        spool = self.spool(EXAMPLES)
        spool.hand_over()
        spool.flush(PATIENCE)
        assert spool.is_dealt_with or spool.was_given_up, "flush came back before its time, and not all is dealt with"
        spool.settle()
        self.assert_arrived(spool.listener, EXAMPLES)
        self.assert_closes(spool.listener)

    def test_an_answer_is_true_at_once(self) -> None:
        spool = self.spool(EXAMPLES)
        spool.hand_over()
        spool.flush(0)
        dealt_with = {each.event_id for each in spool.delivered if each.position <= (spool.answer or 0)}
        assert dealt_with <= set(self.delivered(spool.listener)), "the answer ran ahead of what arrived"
        spool.settle()
        self.assert_closes(spool.listener)

    def test_batches_follow_each_other_without_waiting(self) -> None:
        spool = self.spool(EXAMPLES)
        for size in (1, 2, 5, len(EXAMPLES)):
            spool.hand_over(size)
        spool.settle()
        self.assert_arrived(spool.listener, EXAMPLES)
        self.assert_closes(spool.listener)

    def test_closing_waits_for_what_was_delivered(self) -> None:
        spool = self.spool(EXAMPLES)
        spool.hand_over()
        self.assert_closes(spool.listener)
        self.assert_arrived(spool.listener, EXAMPLES)

    def test_an_instance_begins_knowing_nothing(self) -> None:
        first = self.spool(EXAMPLES)
        first.hand_over()
        first.settle()
        self.assert_closes(first.listener)
        second = self.spool(EXAMPLES)
        second.flush(0)
        assert second.answer is None, "nothing was handed over yet, and there is an answer"
        self.assert_closes(second.listener)

    def test_two_spools_have_nothing_to_do_with_each_other(self) -> None:
        half = len(EXAMPLES) // 2
        mine, theirs = self.spool(EXAMPLES[:half]), self.spool(EXAMPLES[half:])
        mine.hand_over()
        theirs.hand_over(1)
        mine.settle()
        theirs.hand_over()
        theirs.settle()
        self.assert_closes(mine.listener)
        self.assert_closes(theirs.listener)
        lost = {event.event_id for event in EXAMPLES} - set(self.delivered(theirs.listener))
        assert not lost, f"never arrived: {', '.join(map(str, lost))}"

    def test_what_comes_again_after_a_restart_is_the_same(self) -> None:
        for spool in (self.spool(EXAMPLES), self.spool(EXAMPLES)):
            spool.hand_over()
            spool.settle()
            self.assert_closes(spool.listener)
        self.assert_arrived(spool.listener, EXAMPLES)

    def test_nothing_is_lost_where_the_target_refuses(self) -> None:
        spool = self.spool(EXAMPLES)
        spool.hand_over(3)
        spool.settle()
        with self.refusing():
            spool.hand_over()
            spool.flush(BRIEF)
        spool.settle()
        self.assert_arrived(spool.listener, EXAMPLES)
        self.assert_closes(spool.listener)

    def test_closing_does_not_say_that_what_was_refused_is_dealt_with(self) -> None:
        spool = self.spool(EXAMPLES)
        with self.refusing():
            spool.hand_over()
            spool.flush(BRIEF)
            is_done = spool.close(BRIEF)
        self._after_a_restart(spool, is_done=is_done)

    def test_it_goes_on_where_an_answer_comes_late(self) -> None:
        spool = self.spool(EXAMPLES)
        with self.stalling():
            spool.hand_over(3)
            spool.hand_over()
            spool.flush(BRIEF)
            spool.flush(0)
        spool.settle()
        self.assert_arrived(spool.listener, EXAMPLES)
        self.assert_closes(spool.listener)

    def test_closing_keeps_to_its_time_when_nothing_answers(self) -> None:
        spool = self.spool(EXAMPLES)
        with self.stalling():
            spool.hand_over()
            spool.flush(BRIEF)
            is_done = spool.close(BRIEF)
        self._after_a_restart(spool, is_done=is_done)

    def test_an_event_of_a_later_version_stops_nothing(self) -> None:
        known = batch(EXAMPLES[:3]).records
        spool = SpoolDriver(self, self.create(), (known[0], from_the_future(known[1]), known[2]))
        spool.hand_over()
        spool.settle()
        self.assert_closes(spool.listener)
        unknown = set() if self.passes_unknown_on else {known[1].event_id}
        self.assert_arrived(spool.listener, (each for each in known if each.event_id not in unknown))

    def spool(self, events: Iterable[Event]) -> SpoolDriver:
        """A spool with these events, and a listener of its own to hand them to."""
        return self.drive(batch(events).records)

    def drive(self, records: Iterable[EventRecord]) -> SpoolDriver:
        """The same of records."""
        return SpoolDriver(self, self.create(), tuple(records))

    def _after_a_restart(self, first: SpoolDriver, *, is_done: bool) -> None:
        """The next instance gets what is above the last answer, and then all is there."""
        if is_done:
            self.assert_arrived(first.listener, first.delivered)
        second = SpoolDriver(
            self, self.create(), [each for each in first.delivered if each.position > (first.answer or 0)]
        )
        second.hand_over()
        second.settle()
        self.assert_closes(second.listener)
        self.assert_arrived(second.listener, first.delivered)


class SpoolDriver:
    """What the listener bus does with a spool and its listener, with an eye on every answer."""

    def __init__(
        self, contract: _Contract[DurableListener], listener: DurableListener, records: Sequence[EventRecord]
    ) -> None:
        self.listener = listener
        adapted = adapt_listener(listener)
        assert isinstance(adapted, DurableListener), "it has no handle(batch)"
        self._adapted = adapted
        """As the bus calls it: what the listener lacks has its default."""
        self.answer: SpoolPosition | None = None
        self.delivered: list[EventRecord] = []
        self.was_given_up = False
        self._contract = contract
        self._to_come = list(records)

    @property
    def is_dealt_with(self) -> bool:
        """Everything that was handed over."""
        return not self.delivered or self.answer == self.delivered[-1].position

    def hand_over(self, size: int | None = None) -> None:
        """The next so many records, or all. What was given up before comes first."""
        if self.was_given_up:
            self._redeliver()
        records, self._to_come = self._to_come[:size], self._to_come[size:] if size is not None else []
        self.delivered += records
        if records and not self.was_given_up:
            self._ask(CALL_SECONDS, "handle", lambda: self._adapted.handle(RecordBatch(tuple(records))))

    def flush(self, timeout: float) -> None:
        """Nothing where the listener gave up: it isn't asked again before it is handed all of that again."""
        if self.was_given_up:
            return
        self._ask(timeout, "flush", lambda: self._adapted.flush(timeout))

    def settle(self) -> None:
        """Hand over again what was given up, and flush, until all is dealt with."""
        deadline = time.monotonic() + PATIENCE
        pause = 0.01
        while not self.is_dealt_with:
            assert time.monotonic() < deadline, f"only {self.answer} is dealt with after {PATIENCE} s"
            if self.was_given_up:
                time.sleep(pause)
                pause = min(2 * pause, 1.0)
                self._redeliver()
            else:
                self.flush(1.0)

    def close(self, timeout: float) -> bool:
        with self._contract.within(timeout, "close"):
            return self.listener.close(timeout) is True

    def _redeliver(self) -> None:
        again = RecordBatch([each for each in self.delivered if each.position > (self.answer or 0)])
        self.was_given_up = False
        self._ask(CALL_SECONDS, "handle", lambda: self._adapted.handle(again))

    def _ask(self, seconds: float, what: str, call: Callable[[], SpoolPosition | None]) -> None:
        with self._contract.within(seconds, what):
            try:
                answer = call()
            except TransientError:
                self.was_given_up = True
                return
        if answer is None:
            assert self.answer is None, f"{what} answered None after {self.answer}: an answer never goes back"
            return
        assert answer >= (self.answer or 0), f"{what} answered {answer} after {self.answer}: an answer never goes back"
        assert self.delivered, f"{what} answered {answer} before anything was handed over"
        assert answer <= self.delivered[-1].position, f"{what} answered {answer}: that was never handed over"
        self.answer = answer


def _decoded(data: bytes) -> Event | UnknownEvent:
    return Codec().decode(data)


def _by_key(ids: Iterable[EventId], keys: dict[EventId, bytes]) -> dict[bytes, list[EventId]]:
    found: dict[bytes, list[EventId]] = defaultdict(list)
    for each in ids:
        found[keys[each]].append(each)
    return found


def _try(call: Callable[[], object]) -> None:
    """A plain listener may raise what trying again can mend: the bus counts it."""
    try:
        call()
    except TransientError:
        return
