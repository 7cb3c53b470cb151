"""How a durable listener is handed the spool: what it answers, what it raises, and what becomes of it then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from headwater.errors import TerminalError, TransientError
from headwater.events.envelope import Event
from headwater.events.health import Heartbeat
from headwater.listeners.bus import Bus, ListenerState
from headwater.spi import RecordBatch, SpoolPosition
from headwater.testing.examples import DRAFTS
from tests.kit.bus.scripts import ENOUGH, QUICK, Taking, bus_of, emit_all, firsts, ids
from tests.kit.waiting import PATIENCE, until

pytestmark = pytest.mark.slow


def test_batches_are_bounded_by_count_and_by_bytes(tmp_path: Path) -> None:
    by_count, by_bytes = Taking(), Taking()
    with bus_of(tmp_path / "1", {"a": lambda _: by_count}, options=replace(QUICK, batch_count=3)) as bus:
        emitted = emit_all(bus, DRAFTS * 3)
        assert bus.flush(60)
    assert ids(by_count.records) == ids(emitted)
    assert max(map(len, by_count.batches)) <= 3
    with bus_of(tmp_path / "2", {"b": lambda _: by_bytes}, options=replace(QUICK, batch_bytes=2_000)) as bus:
        emitted = emit_all(bus, DRAFTS * 3)
        assert bus.flush(60)
    assert ids(by_bytes.records) == ids(emitted)
    sizes = {record.position: len(record.data) for record in by_bytes.records}
    assert all(len(batch) == 1 or sum(sizes[each] for each in batch[:-1]) <= 2_000 for batch in by_bytes.batches)


def test_one_that_never_answers_is_handed_a_bounded_number_and_flushed_again_and_again(tmp_path: Path) -> None:
    class Hoarding(Taking):
        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            super().handle(batch)
            return None

        def flush(self, timeout: float) -> SpoolPosition | None:
            super().flush(timeout)
            time.sleep(timeout / 2)
            return None

        def close(self, timeout: float) -> bool:
            return False

    hoarding, other = Hoarding(), Taking()
    options = replace(QUICK, batch_count=5, outstanding_count=20)
    with bus_of(tmp_path, {"hoarding": lambda _: hoarding, "other": lambda _: other}, options=options) as bus:
        emitted = emit_all(bus, DRAFTS * 3)
        until(lambda: len(hoarding.flushes) > 5)
        until(lambda: len(other.records) == len(emitted))
        assert 20 <= len(hoarding.records) < 20 + 5
        assert all(timeout <= 1.0 for timeout in hoarding.flushes)
        assert bus.report().listeners[0].lag == len(emitted)
        assert not bus.stop(0.4)


def test_late_answers_move_the_cursor(tmp_path: Path) -> None:
    class Late(Taking):
        answer: SpoolPosition | None = None

        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            super().handle(batch)
            return self.answer

        def flush(self, timeout: float) -> SpoolPosition | None:
            """One record more at each call."""
            self.flushes.append(timeout)
            self.answer = self.records[min(len(self.flushes), len(self.records)) - 1].position
            return self.answer

    late = Late()
    with bus_of(tmp_path, {"late": lambda _: late}) as bus:
        emitted = emit_all(bus, DRAFTS)
        assert bus.flush(60)
        assert len(late.flushes) >= len(emitted)
        assert bus.stop(60)
    assert ids(late.records) == ids(emitted)


def test_a_transient_error_brings_all_above_the_answer_again_to_the_same_instance(tmp_path: Path) -> None:
    class Away(Taking):
        raised = 0

        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            super().handle(batch)
            if len(self.records) > 10 and self.raised < 7:
                self.raised += 1
                raise TransientError("the broker is away")
            return batch.end

    made: list[Away] = []

    def make(_: object) -> Away:
        made.append(Away())
        return made[-1]

    options = replace(QUICK, batch_count=4, commit_interval=60)
    with bus_of(tmp_path, {"away": make}, options=options) as bus:
        emitted = emit_all(bus, DRAFTS)
        assert bus.flush(60)
    (away,) = made
    assert away.raised == 7, "more often than any other error would be borne"
    assert firsts(away.records) == ids(emitted)
    again = [batch[0] for batch in away.batches]
    answered = [batch for batch in away.batches if again.count(batch[0]) == 1]
    assert len({position for batch in answered for position in batch}) == sum(map(len, answered)), "dealt with twice"


def test_what_flush_raises_brings_it_all_again(tmp_path: Path) -> None:
    class Failing(Taking):
        is_failing = True
        answer: SpoolPosition | None = None

        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            super().handle(batch)
            return self.answer

        def flush(self, timeout: float) -> SpoolPosition | None:
            if self.is_failing:
                self.is_failing = False
                raise TransientError("a record that an earlier call took was refused")
            self.answer = super().flush(timeout)
            return self.answer

    failing = Failing()
    with bus_of(tmp_path, {"failing": lambda _: failing}) as bus:
        emitted = emit_all(bus, DRAFTS)
        assert bus.flush(60)
    assert firsts(failing.records) == ids(emitted)
    assert len(failing.records) > len(emitted)


def test_after_a_partial_answer_only_the_rest_comes_again(tmp_path: Path) -> None:
    class Partial(Taking):
        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            super().handle(batch)
            if len(self.batches) == 2:
                raise TransientError("now the rest")
            if len(self.batches) == 1:
                return batch.records[3].position
            return batch.end

    partial, may_begin = Partial(), threading.Event()

    def make(_: object) -> Partial:
        may_begin.wait(60)
        return partial

    with bus_of(tmp_path, {"partial": make}, options=replace(QUICK, batch_count=10)) as bus:
        emit_all(bus, DRAFTS[:20])
        may_begin.set()
        assert bus.flush(60)
    first, second, *rest = partial.batches
    assert (len(first), len(second)) == (10, 10)
    assert [each for batch in rest for each in batch] == [*first[4:], *second]


class _Making:
    """Makes listeners whose first instance is broken in some way, and keeps them all."""

    def __init__(self, broken: Callable[[], Any]) -> None:
        self.made: list[Any] = []
        self._broken = broken

    def __call__(self, _: object) -> Any:
        self.made.append(Taking() if self.made else self._broken())
        return self.made[-1]

    def goes_on_in(self, bus: Bus) -> bool:
        """Whether the second one is at work: who flushes between its making and that isn't waited for."""
        return len(self.made) == 2 and not bus.report().listeners[0].state.is_stopped


class _Raising(Taking):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        super().handle(batch)
        raise self.error


class _Answering(Taking):
    """Answers what it is given, one after the other: offsets from the end of the batch."""

    def __init__(self, *answers: int | None) -> None:
        super().__init__()
        self.answers = list(answers)

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        super().handle(batch)
        answer = self.answers.pop(0)
        return None if answer is None else SpoolPosition(batch.end + answer)


@pytest.mark.parametrize(
    ("broken", "calls", "words"),
    [
        (lambda: _Raising(TerminalError("the topic isn't there")), 1, "the topic isn't there"),
        (lambda: _Raising(KeyError("x")), QUICK.attempts, "KeyError"),
        (lambda: _Raising(SystemExit(3)), QUICK.attempts, "SystemExit"),
        (lambda: _Raising(MemoryError()), QUICK.attempts, "MemoryError"),
        (lambda: _Answering(1), 1, "was handed nothing that far"),
        (lambda: _Answering(0, None), 2, "never goes back"),
        (lambda: _Answering(0, -9), 2, "never goes back"),
    ],
    ids=["terminal", "error", "exit", "memory", "ahead", "none", "back"],
)
def test_set_aside_is_closed_told_once_made_anew_and_goes_on_at_the_cursor(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, broken: Callable[[], Any], calls: int, words: str
) -> None:
    making = _Making(broken)
    with bus_of(tmp_path, {"mine": making}, options=replace(QUICK, batch_count=5)) as bus:
        emitted = emit_all(bus, DRAFTS)
        until(lambda: making.goes_on_in(bus))
        assert bus.flush(60)
        assert bus.stop(60)
    first, second = making.made
    assert len(first.batches) == calls
    assert len(first.closes) == len(second.closes) == 1
    assert firsts([*first.records, *second.records]) == ids(emitted)
    (line,) = [record.message for record in caplog.records if "is suspended" in record.message]
    assert words in line


@pytest.mark.parametrize("where", ["handling", "making"])
def test_stop_waits_for_nobody_who_can_not_go_on(tmp_path: Path, where: str) -> None:
    """What only somebody else can mend isn't tried again while the bus stops."""
    is_called, goes_on = threading.Event(), threading.Event()

    def fail() -> NoReturn:
        is_called.set()
        goes_on.wait(60)
        raise TerminalError("no right")

    class Failing(Taking):
        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            fail()

    stopped: list[bool] = []
    scripts = {"mine": lambda _: fail() if where == "making" else Failing()}
    with bus_of(tmp_path, scripts, options=replace(QUICK, suspended_seconds=120)) as bus:
        emit_all(bus, DRAFTS[:1])
        assert is_called.wait(60)
        began = time.monotonic()
        stopping = threading.Thread(target=lambda: stopped.append(bus.stop(60)))
        stopping.start()
        until(lambda: bus.emit(DRAFTS[0]) == (), "stopping")
        goes_on.set()
        stopping.join(60)
        assert time.monotonic() - began < 30
    assert stopped == [False]


def test_what_a_broken_one_says_at_its_close_is_not_believed(tmp_path: Path) -> None:
    making = _Making(lambda: _Raising(TerminalError("no right")))
    with bus_of(tmp_path, {"mine": making}) as bus:
        emitted = emit_all(bus, DRAFTS)
        until(lambda: making.goes_on_in(bus))
        assert bus.flush(60)
    assert ids(making.made[1].records) == ids(emitted)


def test_errors_that_come_between_answers_are_borne(tmp_path: Path) -> None:
    class Stumbling(Taking):
        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            super().handle(batch)
            if len(self.batches) % 2:
                raise ValueError("once in a while")
            return batch.end

    making: list[Stumbling] = []

    def make(_: object) -> Stumbling:
        making.append(Stumbling())
        return making[-1]

    with bus_of(tmp_path, {"mine": make}, options=replace(QUICK, batch_count=2)) as bus:
        emitted = emit_all(bus, DRAFTS)
        assert bus.flush(60)
        assert bus.report().listeners[0].failures > QUICK.attempts
    assert len(making) == 1
    assert firsts(making[0].records) == ids(emitted)


def test_one_that_hangs_is_given_up_at_stop_and_the_others_have_all(tmp_path: Path) -> None:
    never = threading.Event()

    class Hanging(Taking):
        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            never.wait()
            return super().handle(batch)

    hanging, other = Hanging(), Taking()
    with bus_of(tmp_path, {"hanging": lambda _: hanging, "other": lambda _: other}) as bus:
        emitted = emit_all(bus, DRAFTS)
        until(lambda: len(other.records) == len(emitted))
        began = time.monotonic()
        assert not bus.stop(ENOUGH)
        assert time.monotonic() - began < PATIENCE
        assert [each.state for each in bus.report().listeners] == [ListenerState.GIVEN_UP, ListenerState.CLOSED]
    never.set()
    until(lambda: hanging.batches)
    assert hanging.closes == [], "nothing is called any more"
    fresh = Taking()
    with bus_of(tmp_path, {"hanging": lambda _: fresh}) as bus:
        until(lambda: ids(fresh.records) == ids(emitted))
        until(lambda: [each.name for each in tmp_path.iterdir()] == [bus.spool.name if bus.spool else ""])


@pytest.mark.slow
def test_a_close_that_says_all_is_dealt_with_moves_the_cursor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the time at the end is for closing here: with the usual share a thread that waits half a second for a
    processor has none left."""
    monkeypatch.setattr("headwater.listeners.bus.listener_calls._CLOSE_SHARE", 0.99)
    monkeypatch.setattr("headwater.listeners.bus.listener_calls._LONGEST_CLOSE", PATIENCE)

    class Buffering(Taking):
        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            super().handle(batch)
            return None

        def flush(self, timeout: float) -> SpoolPosition | None:
            self.flushes.append(timeout)
            time.sleep(timeout)
            return None

    buffering = Buffering()
    with bus_of(tmp_path, {"mine": lambda _: buffering}) as bus:
        emitted = emit_all(bus, DRAFTS)
        until(lambda: len(buffering.records) == len(emitted))
        assert bus.stop(PATIENCE)
    assert list(tmp_path.iterdir()) == []


def test_new_events_are_handed_over_while_older_ones_wait_for_an_answer(tmp_path: Path) -> None:
    class Slow(Taking):
        may_answer = False

        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            super().handle(batch)
            return None

        def flush(self, timeout: float) -> SpoolPosition | None:
            return super().flush(timeout) if self.may_answer else None

    slow = Slow()
    with bus_of(tmp_path, {"slow": lambda _: slow}) as bus:
        for _ in range(5):
            emitted = bus.emit(Heartbeat())
            _until_delivered(slow, emitted)
        assert not bus.flush(0.05)
        slow.may_answer = True
        assert bus.flush(60)


def _until_delivered(listener: Taking, emitted: Sequence[Event]) -> None:
    until(lambda: listener.records and listener.records[-1].event_id == emitted[-1].event_id)


@pytest.mark.parametrize("where", ["create", "flush", "close", "raising"])
def test_stop_keeps_its_time_wherever_a_listener_hangs(tmp_path: Path, where: str) -> None:
    never = threading.Event()

    class Odd(Taking):
        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            if where == "raising":
                raise TransientError("away for ever")
            super().handle(batch)
            return None if where == "flush" else batch.end

        def flush(self, timeout: float) -> SpoolPosition | None:
            if where == "flush":
                never.wait()
            return super().flush(timeout)

        def close(self, timeout: float) -> bool:
            if where == "close":
                never.wait()
            return False

    def make(_: object) -> Odd:
        if where == "create":
            never.wait()
        return Odd()

    other = Taking()
    with bus_of(tmp_path, {"odd": make, "other": lambda _: other}) as bus:
        emitted = emit_all(bus, DRAFTS)
        until(lambda: ids(other.records) == ids(emitted))
        began = time.monotonic()
        bus.stop(ENOUGH)
        assert time.monotonic() - began < PATIENCE
        assert len(other.closes) == 1
    never.set()


@pytest.mark.slow
def test_one_that_allocates_without_end_gets_bounded_batches_and_harms_nobody(tmp_path: Path) -> None:
    class Swelling(Taking):
        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            super().handle(batch)
            raise MemoryError(f"no room for {bytearray(1 << 20)[:4]!r}")

    swelling, other = Swelling(), Taking()
    options = replace(QUICK, batch_count=10, attempts=1_000)
    with bus_of(tmp_path, {"swelling": lambda _: swelling, "other": lambda _: other}, options=options) as bus:
        emitted = emit_all(bus, DRAFTS * 4)
        until(lambda: ids(other.records) == ids(emitted))
        until(lambda: len(swelling.batches) > 20)
        assert max(map(len, swelling.batches)) <= 10
        began = time.monotonic()
        assert not bus.stop(0.4)
        assert time.monotonic() - began < PATIENCE


def test_stop_keeps_its_time_while_a_dead_drivers_spool_is_shipped(tmp_path: Path) -> None:
    never, handed = threading.Event(), threading.Event()

    class Hanging(Taking):
        def handle(self, batch: RecordBatch) -> SpoolPosition | None:
            handed.set()
            never.wait()
            return None

    instances: list[Taking] = [_raising_always(), Taking(), Hanging()]
    with bus_of(tmp_path, {"mine": lambda _: instances.pop(0)}) as bus:
        bus.emit(Heartbeat())
        assert not bus.stop(0.2)
    with bus_of(tmp_path, {"mine": lambda _: instances.pop(0)}) as bus:
        assert handed.wait(60)
        began = time.monotonic()
        assert bus.stop(ENOUGH), "nothing of its own is left"
        assert time.monotonic() - began < PATIENCE
    assert len(list(tmp_path.iterdir())) == 1
    never.set()


@pytest.mark.slow
def test_nobody_waits_at_stop_for_what_others_left(tmp_path: Path) -> None:
    instances: list[Taking] = [_raising_always(), Taking(), raising := _raising_always()]
    with bus_of(tmp_path, {"mine": lambda _: instances.pop(0)}) as bus:
        bus.emit(Heartbeat())
        assert not bus.stop(0.2)
    with bus_of(tmp_path, {"mine": lambda _: instances.pop(0)}) as bus:
        until(lambda: raising.batches)
        began = time.monotonic()
        assert bus.stop(3 * PATIENCE)
        assert time.monotonic() - began < PATIENCE


def _raising_always() -> Taking:
    return _Raising(TransientError("away"))


def test_trouble_that_goes_on_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with bus_of(tmp_path, {"mine": lambda _: _raising_always()}) as bus:
        bus.emit(Heartbeat())
        until(lambda: bus.report().listeners[0].failures > 5)
        bus.stop(0.1)
    assert len([record for record in caplog.records if "is retried" in record.message]) == 1
