"""What every forwarder must do, as a test class: subclass it, and say how your forwarder and its target are handled.

    class TestMine(ForwarderContract):
        def create(self, context): return MyForwarder(context)
        def arrived(self): return [each["id"] for each in my_server.received]
        def identities(self, event): return [str(event.event_id)]
        def away(self): return my_server.stopped()

The suite needs `pytest`. More cases will be added within a major version: a forwarder that keeps the words of
`headwater.forwarders.api` passes them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, ClassVar, Final

import pytest

from headwater.consumers.sources import BusRecord
from headwater.errors import TerminalError, TransientError
from headwater.events.avro import Codec
from headwater.events.envelope import Event
from headwater.events.jobs import JobLineage
from headwater.events.keys import key_of
from headwater.forwarders.api import (
    BusEvent,
    CheckableForwarder,
    ClosableForwarder,
    Forwarder,
    ForwarderContext,
    PreviewableForwarder,
    RefusedEventsError,
)
from headwater.lineage.bulk import BusPartition
from headwater.spi import CheckStatus
from headwater.testing.examples import EXAMPLES

PATIENCE: Final = 60.0
"""Seconds that a call may take."""
_PARTITION: Final = BusPartition("cluster", "topic", 0)


class ExampleLineage:
    """Knows the job lineage among the examples."""

    def get(self, fingerprint: bytes) -> JobLineage | None:
        known = (event for event in EXAMPLES if isinstance(event, JobLineage) and event.fingerprint == fingerprint)
        return next(known, None)


def bus_events(events: Iterable[Event]) -> list[BusEvent]:
    """The events as they come from a bus."""
    codec = Codec()
    return [
        BusEvent(event, BusRecord(codec.encode(event), _PARTITION, offset, 1_000_000 + offset, key_of(event)))
        for offset, event in enumerate(events)
    ]


class ForwarderContract:
    """For forwarders. `create`, `arrived`, `identities` and `away` have to be written, the others should be."""

    options: ClassVar[dict[str, str]] = {}
    """The options that the forwarder is created with."""
    ordered: ClassVar[bool] = True
    """Whether each message is of one event alone, so that the order in `arrived` shows theirs."""
    events: ClassVar[Sequence[Event]] = EXAMPLES
    """What is sent: one realistic event of each kind, in order."""

    def create(self, context: ForwarderContext) -> Forwarder:
        """A new forwarder on the same target as the ones before it in the same test."""
        raise AssertionError("a suite says how its forwarder is created")

    def arrived(self) -> Sequence[Hashable]:
        """What is in the target, in the order in which it came there: something that identifies each message. What came
        twice may be there twice."""
        raise AssertionError("a suite says what arrived at its target")

    def identities(self, event: Event) -> Sequence[Hashable]:
        """What of `arrived` an event becomes, in order; nothing for one that isn't sent."""
        raise AssertionError("a suite says what an event becomes")

    def contents(self) -> Any:
        """What the target holds now, to compare: sending twice mustn't change it. Unless it is written, the messages
        without copies."""
        return list(dict.fromkeys(self.arrived()))

    def away(self) -> AbstractContextManager[Any]:
        """Inside it the target is away. One that can't be so skips what needs it by returning `nullcontext()`."""
        raise AssertionError("a suite says how its target goes away")

    def hanging(self) -> AbstractContextManager[Any] | None:
        """Inside it the target takes what comes and never answers; None where it can't be so."""
        return None

    def refusing(self, event: Event) -> AbstractContextManager[Any] | None:
        """Inside it the target refuses what an event becomes, for ever; None where it can't be so."""
        return None

    # What is tested.

    def test_it_is_a_forwarder(self) -> None:
        forwarder = self._create()
        assert asyncio.iscoroutinefunction(forwarder.handle), "write async def handle(self, batch)"
        self._close(forwarder)

    def test_an_unknown_option_is_an_error(self) -> None:
        """A key that is mistyped would be ignored silently."""
        with pytest.raises(TerminalError):
            self.create(ForwarderContext("contract", {**self.options, "no.such.option": "1"}, ExampleLineage()))

    def test_each_event_arrives_in_order(self) -> None:
        self._run(lambda forwarder: forwarder.handle(bus_events(self.events)))
        self._assert_arrived()

    def test_batches_of_one_are_the_same(self) -> None:
        async def one_by_one(forwarder: Forwarder) -> None:
            for bus_event in bus_events(self.events):
                await forwarder.handle([bus_event])

        self._run(one_by_one)
        self._assert_arrived()

    def test_twice_changes_nothing(self) -> None:
        """As after a crash: the same batch comes again, to another process."""
        self._run(lambda forwarder: forwarder.handle(bus_events(self.events)))
        once = self.contents()
        self._run(lambda forwarder: forwarder.handle(bus_events(self.events)))
        assert self.contents() == once, "what was sent twice changed the target"

    def test_an_empty_batch_is_nothing(self) -> None:
        self._run(lambda forwarder: forwarder.handle([]))
        assert list(self.arrived()) == []

    def test_a_target_that_is_away_is_a_transient_error_and_then_everything_arrives(self) -> None:
        """By one forwarder: its connections recover."""

        async def away_and_back(forwarder: Forwarder) -> None:
            with self.away(), pytest.raises((TransientError, OSError, asyncio.TimeoutError)):
                await asyncio.wait_for(forwarder.handle(bus_events(self.events)), PATIENCE)
            await asyncio.wait_for(forwarder.handle(bus_events(self.events)), PATIENCE)

        self._run(away_and_back)
        self._assert_arrived()

    def test_a_call_that_is_cancelled_ends_and_comes_again(self) -> None:
        async def cancelled(forwarder: Forwarder) -> None:
            hanging = self.hanging()
            if hanging is None:
                return
            with hanging:
                began = time.monotonic()
                with suppress(TransientError, OSError, asyncio.TimeoutError):
                    await asyncio.wait_for(forwarder.handle(bus_events(self.events)), 0.3)
                assert time.monotonic() - began < PATIENCE, "it didn't end when it was cancelled"
            await asyncio.wait_for(forwarder.handle(bus_events(self.events)), PATIENCE)
            self._assert_arrived()

        self._run(cancelled)

    def test_what_is_refused_is_named_and_the_rest_arrives(self) -> None:
        bad = next(event for event in self.events if self.identities(event))
        refusing = self.refusing(bad)
        if refusing is None:
            return

        async def refused(forwarder: Forwarder) -> None:
            with refusing, pytest.raises(RefusedEventsError) as raised:
                await forwarder.handle(bus_events(self.events))
            assert list(raised.value.reasons) == [list(self.events).index(bad)], "it has to name the event by its index"
            assert raised.value.reasons[list(self.events).index(bad)], "it has to say why"

        self._run(refused)
        self._assert_arrived(but=bad)

    def test_checking_writes_nothing_and_says_whether_the_target_is_there(self) -> None:
        async def check(forwarder: Forwarder) -> None:
            if not isinstance(forwarder, CheckableForwarder):
                return
            wrong = [each async for each in forwarder.check() if each.status is CheckStatus.ERROR]
            assert not wrong, f"all is well with the target, and the check says: {wrong}"
            assert list(self.arrived()) == [], "a check wrote something"

        self._run(check)

    def test_a_preview_sends_nothing_and_shows_what_is_sent(self) -> None:
        async def preview(forwarder: Forwarder) -> None:
            if not isinstance(forwarder, PreviewableForwarder):
                return
            for event in self.events:
                shown = list(forwarder.preview(event))
                assert all(isinstance(each, str) for each in shown)
                assert bool(shown) == bool(self.identities(event)), f"the preview of {event.kind} isn't what is sent"
            assert list(self.arrived()) == [], "a preview sent something"

        self._run(preview)

    def test_closing_ends_it_also_while_the_target_is_away(self) -> None:
        forwarder = self._create()
        began = time.monotonic()
        with self.away():
            self._close(forwarder)
        assert time.monotonic() - began < PATIENCE

    # How it is done.

    def _create(self) -> Forwarder:
        return self.create(ForwarderContext("contract", dict(self.options), ExampleLineage()))

    def _run(self, act: Callable[[Forwarder], Awaitable[None]]) -> None:
        async def run() -> None:
            forwarder = self._create()
            try:
                await asyncio.wait_for(act(forwarder), 2 * PATIENCE)
            finally:
                await _closed(forwarder)

        asyncio.run(run())

    def _close(self, forwarder: Forwarder) -> None:
        asyncio.run(asyncio.wait_for(_closed(forwarder), PATIENCE))

    def _assert_arrived(self, but: Event | None = None) -> None:
        """All messages, nothing else, and those of one key in order."""
        messages = {event.event_id: list(self.identities(event)) for event in self.events if event != but}
        expected = [message for event in self.events if event != but for message in messages[event.event_id]]
        arrived = list(dict.fromkeys(self.arrived()))
        assert not (lost := set(expected) - set(arrived)), f"never arrived: {lost}"
        assert not (others := set(arrived) - set(expected)), f"nobody sent these: {others}"
        if not self.ordered:
            return
        places = {each: place for place, each in enumerate(arrived)}
        by_key: dict[bytes | None, list[int]] = {}
        for event in self.events:
            if event != but:
                by_key.setdefault(key_of(event), []).extend(places[message] for message in messages[event.event_id])
        for key, found in by_key.items():
            assert found == sorted(found), f"events of the key {key!r} changed places"


async def _closed(forwarder: Forwarder) -> None:
    if isinstance(forwarder, ClosableForwarder):
        await forwarder.close()
