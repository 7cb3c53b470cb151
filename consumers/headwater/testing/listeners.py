"""What every listener must do, as test classes: subclass one, say how your listener is made and what reached its end.

    class TestMine(DurableListenerContract):
        def create(self): return MyListener(...)
        def delivered(self, listener): return [event.event_id for event in everything_in_my_system()]

The suites need `pytest`. More cases will be added within a major version: a listener that keeps the words of
`headwater.spi` passes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.events.avro import Codec
from headwater.events.envelope import Event, EventId
from headwater.spi import Batch, DurableListener, Listener, Position, Record
from headwater.testing.examples import EXAMPLES

PATIENCE = 30.0
"""Seconds that a contract waits for what must come."""


def batch(events: Sequence[Event], first: int = 1) -> Batch:
    """The events as they lie in a spool from that position on."""
    codec = Codec()
    return Batch(tuple(Record(Position(at), event, codec.encode(event)) for at, event in enumerate(events, first)))


class ListenerContract:
    """For plain listeners."""

    def create(self) -> Listener:
        """A new listener; its configuration is yours."""
        raise AssertionError("a suite says how its listener is made")

    def delivered(self, listener: Any) -> list[EventId]:
        """What has reached the listener's end, in order."""
        raise AssertionError("a suite says what its listener delivered")

    def test_it_is_a_listener(self) -> None:
        listener = self.create()
        assert isinstance(listener, Listener)
        assert listener.close(PATIENCE)

    def test_what_it_was_told_is_there_in_order_after_a_flush(self) -> None:
        listener = self.create()
        for event in EXAMPLES:
            listener.on_event(event)
        listener.flush(PATIENCE)
        assert self.delivered(listener) == [event.event_id for event in EXAMPLES]
        assert listener.close(PATIENCE)

    def test_closing_lets_nothing_fall(self) -> None:
        listener = self.create()
        for event in EXAMPLES:
            listener.on_event(event)
        assert listener.close(PATIENCE)
        assert self.delivered(listener) == [event.event_id for event in EXAMPLES]

    def test_it_takes_note_of_what_it_missed(self) -> None:
        listener = self.create()
        listener.on_missed(7)
        listener.on_event(EXAMPLES[0])
        assert listener.close(PATIENCE)
        assert self.delivered(listener) == [EXAMPLES[0].event_id]


class DurableListenerContract:
    """For durable listeners. `delivered` may hold an event twice: at least once is what is promised."""

    def create(self) -> DurableListener:
        """A new listener on the same target as the ones before it in the same test."""
        raise AssertionError("a suite says how its listener is made")

    def delivered(self, listener: Any) -> list[EventId]:
        """What has reached the listener's end, in order."""
        raise AssertionError("a suite says what its listener delivered")

    def test_it_is_a_durable_listener(self) -> None:
        listener = self.create()
        assert isinstance(listener, DurableListener)
        assert listener.close(PATIENCE)

    def test_what_it_says_is_dealt_with_is_there(self) -> None:
        listener = self.create()
        handed = batch(EXAMPLES)
        told = listener.handle(handed)
        reached = max(told or Position(0), listener.flush(PATIENCE) or Position(0))
        assert reached == handed.end
        assert _once(self.delivered(listener)) == [event.event_id for event in EXAMPLES]
        assert listener.close(PATIENCE)

    def test_a_position_never_runs_ahead(self) -> None:
        listener = self.create()
        half = len(EXAMPLES) // 2
        first, second = batch(EXAMPLES[:half]), batch(EXAMPLES[half:], half + 1)
        assert (listener.handle(first) or Position(0)) <= first.end
        assert (listener.handle(second) or Position(0)) <= second.end
        assert listener.flush(PATIENCE) == second.end
        assert listener.close(PATIENCE)
        assert _once(self.delivered(listener)) == [event.event_id for event in EXAMPLES]

    def test_closing_answers_whether_everything_went_out(self) -> None:
        listener = self.create()
        listener.handle(batch(EXAMPLES))
        if listener.close(PATIENCE):
            assert _once(self.delivered(listener)) == [event.event_id for event in EXAMPLES]

    def test_what_is_handed_over_again_after_a_restart_changes_nothing(self) -> None:
        for listener in (self.create(), self.create()):
            listener.handle(batch(EXAMPLES))
            assert listener.flush(PATIENCE) == batch(EXAMPLES).end
            assert listener.close(PATIENCE)
        listener = self.create()
        assert set(self.delivered(listener)) == {event.event_id for event in EXAMPLES}


def _once(ids: Sequence[EventId]) -> list[EventId]:
    """In the order of the first delivery of each."""
    return list(dict.fromkeys(ids))
