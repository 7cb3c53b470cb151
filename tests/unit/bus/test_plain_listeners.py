"""How a plain listener is served: in order, from a bounded queue, with a number for what it misses."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import TerminalError
from headwater.events.envelope import Event
from headwater.events.health import Heartbeat
from headwater.listeners.bus import ListenerState
from headwater.testing.examples import DRAFTS
from tests.kit.bus.scripts import ENOUGH, QUICK, Hearing, Taking, bus_of, emit_all, ids
from tests.kit.waiting import PATIENCE, until


class Held(Hearing):
    """Hears nothing until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = threading.Event()

    def on_event(self, event: Event) -> None:
        self.may_go_on.wait()
        super().on_event(event)


@pytest.mark.slow
def test_what_does_not_fit_is_missed_and_told_before_the_next_event(tmp_path: Path) -> None:
    held, order = Held(), []
    held.on_missed = lambda count: order.append(("missed", count, len(held.events)))  # type: ignore[method-assign]
    with bus_of(tmp_path, {"held": lambda _: held}, options=replace(QUICK, queue_count=4)) as bus:
        bus.emit(Heartbeat())
        until(lambda: bus.report().listeners[0].received == 1)
        emitted = emit_all(bus, [Heartbeat()] * 10)
        assert len(emitted) == 10, "who tells waits for nobody"
        assert bus.dropped() == {"listener.held": 6}
        held.may_go_on.set()
        until(lambda: len(held.events) == 5)
        bus.emit(Heartbeat())
        assert bus.flush(60)
        assert [event.sequence for event in held.events] == [1, 2, 3, 4, 5, 12]
        assert order == [("missed", 6, 5)]


@pytest.mark.slow
def test_bytes_are_bounded_too(tmp_path: Path) -> None:
    held = Held()
    with bus_of(tmp_path, {"held": lambda _: held}, options=replace(QUICK, queue_bytes=1_000)) as bus:
        emit_all(bus, DRAFTS * 2)
        assert bus.dropped()["listener.held"] > len(DRAFTS)
        held.may_go_on.set()
        until(lambda: bus.report().listeners[0].lag == 0)
        bus.stop(PATIENCE)
        assert sum(held.missed) + len(held.events) == 2 * len(DRAFTS)


def test_what_is_missed_at_the_end_is_reported_at_the_end(tmp_path: Path) -> None:
    held = Held()
    with bus_of(tmp_path, {"held": lambda _: held}, options=replace(QUICK, queue_count=1)) as bus:
        bus.emit(Heartbeat())
        until(lambda: bus.report().listeners[0].received == 1)
        emit_all(bus, [Heartbeat()] * 5)
        held.may_go_on.set()
        assert not bus.stop(PATIENCE), "some were missed"
    assert (len(held.events), held.missed) == (2, [4])


def test_an_error_costs_one_event_and_is_counted(tmp_path: Path) -> None:
    class Stumbling(Hearing):
        def on_event(self, event: Event) -> None:
            if event.sequence % 3 == 0:
                raise ValueError("not this one")
            super().on_event(event)

    stumbling = Stumbling()
    with bus_of(tmp_path, {"mine": lambda _: stumbling}) as bus:
        emitted = emit_all(bus, DRAFTS)
        assert bus.flush(60)
        assert stumbling.events == [event for event in emitted if event.sequence % 3]
        assert bus.report().listeners[0].failures == len(DRAFTS) // 3


class Failing(Hearing):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error, self.calls = error, 0
        self.may_fail = threading.Event()

    def on_event(self, event: Event) -> None:
        self.may_fail.wait()
        self.calls += 1
        raise self.error


@pytest.mark.slow
@pytest.mark.parametrize(("error", "calls"), [(ValueError("always"), QUICK.attempts), (TerminalError("never"), 1)])
def test_set_aside_the_next_one_is_told_how_many_came_in_between(tmp_path: Path, error: Exception, calls: int) -> None:
    failing, next_one, may_begin = Failing(error), Hearing(), threading.Event()
    instances: list[Any] = [failing, next_one]

    def make(_: object) -> Any:
        made = instances.pop(0)
        assert made is failing or may_begin.wait(PATIENCE)
        return made

    with bus_of(tmp_path, {"mine": make}) as bus:
        emit_all(bus, [Heartbeat()] * (calls + 3))
        failing.may_fail.set()
        until(lambda: bus.report().listeners[0].state is ListenerState.SUSPENDED)
        emit_all(bus, [Heartbeat()] * 4)
        may_begin.set()
        until(lambda: bus.report().listeners[0].state is ListenerState.RUNNING)
        (last,) = bus.emit(Heartbeat())
        assert bus.flush(60)
        assert (failing.calls, len(failing.closes)) == (calls, 1)
        assert next_one.missed == [3 + 4]
        assert next_one.events == [last]


def test_one_that_hangs_harms_nobody(tmp_path: Path) -> None:
    held, durable, plain = Held(), Taking(), Hearing()
    scripts = {"held": lambda _: held, "durable": lambda _: durable, "plain": lambda _: plain}
    with bus_of(tmp_path, scripts, options=replace(QUICK, queue_count=100)) as bus:
        emitted = emit_all(bus, DRAFTS * 3)
        until(lambda: len(plain.events) == len(durable.records) == len(emitted))
        began = time.monotonic()
        assert not bus.stop(ENOUGH)
        assert time.monotonic() - began < PATIENCE
    assert ids(durable.records) == ids(emitted)
    assert (held.closes, len(plain.closes)) == ([], 1)
    held.may_go_on.set()


def test_a_flush_reaches_the_listener_even_while_events_go_on_coming(tmp_path: Path) -> None:
    plain, ended = Hearing(), threading.Event()
    with bus_of(tmp_path, {"mine": lambda _: plain}) as bus:

        def go_on() -> None:
            while not ended.is_set():
                bus.emit(Heartbeat())

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            until(lambda: plain.events)
            assert bus.flush(60)
        finally:
            ended.set()
            thread.join()
        assert len(plain.flushes) == 1


def test_a_listener_that_has_only_what_its_author_needs_is_taken(tmp_path: Path) -> None:
    """No `on_missed`, and a `close` that says nothing: all that it received counts as delivered."""
    heard: list[Event] = []

    class Short:
        def on_event(self, event: Event) -> None:
            heard.append(event)

        def flush(self, timeout: float) -> None: ...

        def close(self, timeout: float) -> None: ...

    with bus_of(tmp_path, {"short": lambda _: Short()}) as bus:
        emitted = emit_all(bus, [Heartbeat()] * 3)
        assert bus.stop(PATIENCE)
    assert ids(heard) == ids(emitted)
