"""Commands that run until they are told to stop."""

from __future__ import annotations

import os
import signal
import threading

from headwater.cli.service import stopping_on_signals
from tests.kit.waiting import until


def test_a_signal_stops_even_while_the_main_thread_holds_the_lock_that_stopping_takes() -> None:
    """A handler that runs in the main thread would wait for itself: so `Event.set` does within `Event.wait`."""
    stopped = threading.Event()
    with stopping_on_signals(stopped.set, "stored"):
        with stopped._cond:  # type: ignore[attr-defined]
            os.kill(os.getpid(), signal.SIGTERM)
        assert stopped.wait(60)


def test_afterwards_signals_do_what_they_did_before() -> None:
    before = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]
    with stopping_on_signals(lambda: None, "stored"):
        assert signal.getsignal(signal.SIGTERM) is not before[0]
    assert [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)] == before
    until(lambda: "headwater-signals" not in {each.name for each in threading.enumerate()}, "its thread stays", 60)
