"""The contract suites on the listeners that everything else is compared with, and on ones that break their word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headwater.events.envelope import Event, EventId
from headwater.spi import Batch, Position, Record
from headwater.testing.listeners import DurableListenerContract, ListenerContract
from headwater.testing.memory import DurableMemoryListener, MemoryListener


class TestMemoryListener(ListenerContract):
    def create(self) -> MemoryListener:
        return MemoryListener()

    def delivered(self, listener: Any) -> list[EventId]:
        return [event.event_id for event in listener.events]


class TestDurableMemoryListener(DurableListenerContract):
    @pytest.fixture(autouse=True)
    def _target(self) -> None:
        self.records: list[Record] = []

    def create(self) -> DurableMemoryListener:
        return DurableMemoryListener(self.records)

    def delivered(self, listener: Any) -> list[EventId]:
        return [record.event.event_id for record in self.records]


class Forgetful(MemoryListener):
    def on_event(self, event: Event) -> None:
        if event.sequence % 7:
            super().on_event(event)


class Lying(DurableMemoryListener):
    """Says that it is through before it is."""

    def handle(self, batch: Batch) -> Position | None:
        super().handle(Batch(batch.records[:-1]))
        return batch.end


class Hasty(DurableMemoryListener):
    """Says more than it was handed."""

    def handle(self, batch: Batch) -> Position | None:
        return Position((super().handle(batch) or 0) + 1)


def _suite(base: type[Any], broken: type[Any]) -> Any:
    class Suite(base):  # type: ignore[misc]  # the base is a parameter
        def create(self) -> Any:
            return broken()

        def delivered(self, listener: Any) -> list[EventId]:
            kept = listener.events if isinstance(listener, MemoryListener) else [r.event for r in listener.records]
            return [event.event_id for event in kept]

    return Suite()


@pytest.mark.parametrize(
    "case",
    [
        _suite(ListenerContract, Forgetful).test_what_it_was_told_is_there_in_order_after_a_flush,
        _suite(ListenerContract, Forgetful).test_closing_lets_nothing_fall,
        _suite(DurableListenerContract, Lying).test_what_it_says_is_dealt_with_is_there,
        _suite(DurableListenerContract, Hasty).test_a_position_never_runs_ahead,
    ],
)
def test_a_listener_that_breaks_its_word_fails(case: Callable[[], None]) -> None:
    with pytest.raises(AssertionError):
        case()
