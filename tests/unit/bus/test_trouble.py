"""What goes wrong with a listener is counted by cause, shown, and logged once."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from headwater.errors import TransientError
from headwater.listeners.bus import ListenerState
from headwater.listeners.bus.listener_errors import OTHER_CAUSES, ListenerErrors
from headwater.spi import ListenerContext, RecordBatch, SpoolPosition
from headwater.testing.examples import DRAFTS
from tests.kit.bus.scripts import Hearing, Taking, bus_of, emit_all
from tests.kit.waiting import until


class Waiting(Taking):
    """Answers once it may; says meanwhile what is in its way, on a thread that is none of the bus."""

    def __init__(self, context: ListenerContext) -> None:
        super().__init__()
        self.may_answer = threading.Event()
        self._context = context

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        super().handle(batch)
        for detail in ("no answer after 3 ms", "no answer after 45 ms"):
            callback = threading.Thread(target=self._context.report_problem, args=("transport", detail))
            callback.start()
            callback.join()
        return self._answer()

    def flush(self, timeout: float) -> SpoolPosition | None:
        super().flush(timeout)
        return self._answer()

    def close(self, timeout: float) -> bool:
        return self.may_answer.is_set()

    def _answer(self) -> SpoolPosition | None:
        return self.records[-1].position if self.records and self.may_answer.is_set() else None


def test_trouble_shows_until_the_listener_gets_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made: list[Waiting] = []

    def make(context: ListenerContext) -> Waiting:
        made.append(Waiting(context))
        return made[-1]

    with caplog.at_level(logging.INFO), bus_of(tmp_path, {"away": make}) as bus:
        emit_all(bus, DRAFTS[:1])  # one batch, about which there are two reports
        until(lambda: bus.report().listeners[0].errors.get("transport", 0) == 2)
        (report,) = bus.report().listeners
        assert report.state is ListenerState.PAUSING
        assert (report.last_error, report.failures) == ("transport: no answer after 45 ms", 0)
        assert "transport, the last: transport: no answer after 45 ms" in str(report)
        made[0].may_answer.set()
        assert bus.flush(60)
        assert bus.report().listeners[0].state is ListenerState.RUNNING
    said = [record.getMessage() for record in caplog.records if "away" in record.getMessage()]
    assert said == [
        "listener away reported a problem and goes on: transport: no answer after 3 ms",
        "listener away goes on",
    ]


def test_what_is_raised_is_counted_by_its_type(tmp_path: Path) -> None:
    class Failing(Taking):
        left = 3

        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            self.left -= 1
            if self.left >= 0:
                raise TransientError("the table is locked") if self.left else OSError("no route")
            return super().handle(batch)

    with bus_of(tmp_path, {"failing": lambda _: Failing()}) as bus:
        emit_all(bus, DRAFTS[:1])
        assert bus.flush(60)
        (report,) = bus.report().listeners
    assert report.errors == {"TransientError": 2, "OSError": 1}
    assert report.failures == 3


def test_a_plain_listener_tells_trouble_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Slow(Hearing):
        def __init__(self, context: ListenerContext) -> None:
            super().__init__()
            context.report_problem("throttled", "for 20 ms")

    with caplog.at_level(logging.INFO), bus_of(tmp_path, {"slow": Slow}) as bus:
        emit_all(bus, DRAFTS[:2])
        assert bus.flush(60)
        (report,) = bus.report().listeners
    assert (dict(report.errors), report.state) == ({"throttled": 1}, ListenerState.RUNNING)
    assert "listener slow goes on" in caplog.text


class Hands:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().partition("goes on: ")[2] for record in caplog.records]


def test_trouble_that_comes_and_goes_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    hands = Hands()
    errors = ListenerErrors("kafka", hands)
    overs: list[bool] = []
    for seconds in range(0, 121, 10):
        hands.now = 100.0 + seconds
        errors.report_problem("throttled", f"for {seconds} ms")
        overs.append(errors.clear())
    assert warnings_in(caplog) == ["throttled: for 0 ms", "throttled: for 60 ms", "throttled: for 120 ms"]
    assert [index for index, over in enumerate(overs) if over] == [0, 6, 12], "it says so only of what it reported"
    assert not errors.clear()
    assert errors.counts == {"throttled": 13}


def test_two_troubles_that_take_turns_are_logged_once_each(caplog: pytest.LogCaptureFixture) -> None:
    errors = ListenerErrors("kafka")
    for _ in range(3):
        errors.report_problem("transport", "broker 1 is away")
        errors.report_problem("authentication", "the mechanism is wrong")
    assert warnings_in(caplog) == ["transport: broker 1 is away", "authentication: the mechanism is wrong"]


@pytest.mark.slow
def test_whatever_a_listener_says_takes_bounded_room(caplog: pytest.LogCaptureFixture) -> None:
    errors = ListenerErrors("kafka")
    for number in range(1_000):
        name = "".join(chr(ord("a") + int(digit)) for digit in str(number))
        errors.report_problem(name, f"{name} " * 1_000 + "\nfurther")
    assert len(errors.counts) == 51
    assert errors.counts[OTHER_CAUSES] == 950
    assert len(errors.last) <= 600
    assert "\n" not in errors.last
    assert len(caplog.records) == 20


def test_threads_may_tell_at_once() -> None:
    errors = ListenerErrors("kafka")
    begin = threading.Barrier(4)

    def tell() -> None:
        begin.wait()
        for _ in range(2_000):
            errors.report_problem("transport", "away")

    threads = [threading.Thread(target=tell) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors.counts == {"transport": 8_000}
