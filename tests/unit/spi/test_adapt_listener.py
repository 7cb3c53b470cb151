"""A listener needs `on_event` or `handle`; what else it lacks is filled in, and what the bus can't call is refused."""

from __future__ import annotations

import pytest

from headwater.errors import PluginError
from headwater.events import Event
from headwater.spi import DurableListener, Listener, RecordBatch, SpoolPosition
from headwater.spi.adapters import adapt_listener
from headwater.testing.examples import EXAMPLES
from headwater.testing.listeners import batch


class Plain:
    """As a new user would write it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.flushed = 0

    def on_event(self, event: Event) -> None:
        self.events.append(event)

    def flush(self, timeout: float) -> None:
        self.flushed += 1

    def close(self, timeout: float) -> None:
        self.events.append(EXAMPLES[0])


class Derived(Listener):
    def on_event(self, event: Event) -> None: ...


class Archive:
    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        return batch.end


class DerivedArchive(DurableListener):
    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        if len(batch) > 2:
            raise ConnectionError
        return batch.end


def test_an_object_with_some_of_the_methods_is_completed() -> None:
    made = Plain()
    listener = adapt_listener(made)
    assert isinstance(listener, Listener)
    assert not isinstance(listener, DurableListener)
    listener.on_event(EXAMPLES[1])
    listener.on_missed(3)
    listener.flush(1)
    assert listener.close(1) is None
    assert (made.events, made.flushed) == ([EXAMPLES[1], EXAMPLES[0]], 1)


def test_what_is_derived_stays_what_it_is() -> None:
    made = Derived()
    assert adapt_listener(made) is made
    made.on_missed(3)
    assert made.close(1) is None


@pytest.mark.parametrize("kind", [Archive, DerivedArchive])
def test_a_durable_one_without_a_flush_repeats_its_last_answer(kind: type) -> None:
    listener = adapt_listener(kind())
    assert isinstance(listener, DurableListener)
    assert listener.flush(0) is None
    two = batch(EXAMPLES[:2])
    assert listener.handle(two) == listener.flush(0) == two.end
    assert listener.close(1) is None


def test_what_it_raised_for_is_not_answered() -> None:
    listener = adapt_listener(DerivedArchive())
    assert isinstance(listener, DurableListener)
    one = batch(EXAMPLES[:1])
    assert listener.handle(one) == one.end
    with pytest.raises(ConnectionError):
        listener.handle(batch(EXAMPLES[:3]))
    assert listener.flush(0) == one.end


def test_a_durable_one_whose_handle_never_answers_is_reported_so_once(caplog: pytest.LogCaptureFixture) -> None:
    """Its author forgot to return `batch.end`: nothing would ever count as delivered, and nobody would know why."""

    class Forgetful(DurableListener):
        def handle(self, batch: RecordBatch) -> SpoolPosition | None: ...

    listener = adapt_listener(Forgetful())
    assert isinstance(listener, DurableListener)
    for _ in range(2):
        listener.handle(batch(EXAMPLES[:1]))
    (line,) = caplog.messages
    assert "Forgetful.handle returned None" in line
    assert "return batch.end" in line


@pytest.mark.parametrize(
    ("created", "message"),
    [
        (None, "create returned None, which is no listener: it has neither on_event nor handle; derive"),
        (object(), "create returned an object of object"),
        (Plain, r"create returned the class Plain: return an object of it, Plain\(\)"),
    ],
)
def test_what_is_no_listener_is_refused(created: object, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        adapt_listener(created)


async def asynchronous(self: object, event: Event) -> None: ...


def no_arguments(_: object) -> None: ...


def needs_more(self: object, event: Event, index: int) -> None: ...


@pytest.mark.parametrize(
    ("base", "method", "replaced", "message"),
    [
        (
            Plain,
            "on_event",
            no_arguments,
            r"Wrong\.on_event\(\).* can't be called as on_event\(event\): write",
        ),
        (Plain, "on_event", needs_more, "can't be called as on_event"),
        (
            Plain,
            "on_event",
            asynchronous,
            r"asynchronous.*: write def on_event\(self, event\), without async",
        ),
        (Plain, "close", no_arguments, r"write def close\(self, timeout\)"),
        (Derived, "close", no_arguments, r"write def close\(self, timeout\)"),
        (Derived, "on_missed", None, r"Wrong\.on_missed is no method: write def on_missed\(self, count\)"),
        (Archive, "handle", no_arguments, r"write def handle\(self, batch\)"),
        (DerivedArchive, "flush", no_arguments, r"write def flush\(self, timeout\)"),
    ],
)
def test_a_method_that_the_bus_cannot_call_is_refused_with_the_right_one(
    base: type, method: str, replaced: object, message: str
) -> None:
    created = type("Wrong", (base,), {method: replaced})()
    with pytest.raises(PluginError, match=message):
        adapt_listener(created)


def test_arguments_with_defaults_and_any_names_are_fine() -> None:
    class Own(Plain):
        def on_event(self, one: Event, extra: int = 3) -> None: ...

        def on_missed(self, *anything: object) -> None: ...

    assert isinstance(adapt_listener(Own()), Listener)
