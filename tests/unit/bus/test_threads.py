"""Threads that do something again and again, and end when they are told to."""

from __future__ import annotations

import threading

import pytest

from headwater.listeners.threads import DaemonThread, PeriodicThread
from tests.kit.waiting import until


def test_rounds_come_at_once_when_woken_and_after_a_while_and_not_after_stop() -> None:
    done: list[int] = []
    rounds = PeriodicThread("rounds", lambda: done.append(len(done)), 3600, at_once=True)
    rounds.start()
    until(lambda: len(done) == 1)
    rounds.wake()
    until(lambda: len(done) == 2)
    assert rounds.stop(60)
    rounds.wake()
    assert done == [0, 1]
    often = PeriodicThread("often", lambda: done.append(-1), 0.001)
    often.start()
    until(lambda: done.count(-1) > 3)
    assert often.stop(60)


def test_a_round_that_fails_is_reported_once_in_each_way_and_is_not_the_last(caplog: pytest.LogCaptureFixture) -> None:
    ways = ["a", "a", "b", "", "b"]
    left = list(ways)
    is_over = threading.Event()

    def fail() -> None:
        word = left.pop(0)
        if not left:
            is_over.set()
        if word:
            raise ValueError(word)

    rounds = PeriodicThread("rounds", fail, 0.001)
    rounds.start()
    assert is_over.wait(60)
    assert rounds.stop(60)
    messages = [each for each in caplog.messages if "IndexError" not in each]  # of a round more
    assert messages == ["rounds: ValueError: a", "rounds: ValueError: b", "rounds: ValueError: b"]


def test_whoever_was_never_started_or_does_not_end_is_not_waited_for() -> None:
    goes_on = threading.Event()
    assert DaemonThread("never", goes_on.set).join(0)
    hangs = DaemonThread("hangs", lambda: _wait(goes_on))
    hangs.start()
    assert not hangs.join(0.01)
    goes_on.set()
    assert hangs.join(60)


def _wait(event: threading.Event) -> None:
    event.wait(60)
