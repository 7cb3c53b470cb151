"""What can be seen of how this process ends.

An unhandled exception shows in `sys.excepthook`, a signal in its handler (`signals`); `raise SystemExit(3)` shows
nowhere, so that an end without either is ENDED. Only `headwater run`, which runs the script itself, knows it. What is
put in place here passes everything on to what was there before, and is taken away again.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from headwater.listeners.installation.signals import SignalWatcher
from headwater.listeners.jobs import ENDED, RunEnd, run_end_of

ExceptHook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


class ExitWatcher:
    """One for the process. `on_kill` is called when a signal ends it."""

    def __init__(self, on_kill: Callable[[RunEnd], None]) -> None:
        self.is_end_awaited = False
        """Whether somebody will say how the process ends (`known_end`)."""
        self.known_end: RunEnd | None = None
        self.final_signal: signal.Signals | None = None
        """The signal that has the last word, when all that is registered for exit is through."""
        self._unhandled_end: RunEnd | None = None
        self._is_in_excepthook = False
        self._previous: ExceptHook | None = None
        self._signals = SignalWatcher(on_kill)

    def watch(self) -> None:
        """Look at unhandled exceptions and at signals. From the main thread only the latter can be done."""
        if self._previous is None:
            self._previous, sys.excepthook = sys.excepthook, self._excepthook
        self._signals.watch()

    def unwatch(self) -> None:
        """Give back what is still ours."""
        if self._previous is not None and sys.excepthook == self._excepthook:
            sys.excepthook, self._previous = self._previous, None
        self._signals.unwatch()

    def forget(self) -> None:
        """In a forked child, whose end is no business of ours."""
        self.is_end_awaited, self.known_end, self.final_signal, self._unhandled_end, self._signals.handler_end = (
            False,
            None,
            None,
            None,
            None,
        )
        with suppress(ValueError, OSError):  # not in the main thread
            self.unwatch()

    def end_at_stop(self) -> RunEnd | None:
        """How a run ends whose context is stopped now; None where that shows later, or may do so."""
        if self._is_in_excepthook or is_exiting():
            return self.end_at_exit()
        self._unhandled_end = None  # it went on after that
        if self.is_unwinding():
            return self._signals.end_of(sys.exc_info()[1])
        self._signals.handler_end = None  # and after that
        return None if self.is_end_awaited else ENDED

    def end_at_exit(self) -> RunEnd:
        """How this process ends, which it is doing now."""
        return self.known_end or self._unhandled_end or self._signals.handler_end or ENDED

    def end_of(self, error: BaseException | None) -> RunEnd:
        """How something ended that was left by this exception, or by none; a handler of a signal may have raised it."""
        return self._signals.end_of(error) or run_end_of(error)

    def die_of_signal(self) -> None:
        """Of the signal that a script which `headwater run` ran left unhandled: its parent is to see it."""
        if self.final_signal is not None:
            for stream in (sys.stdout, sys.stderr):
                with suppress(Exception):  # closed, or gone
                    stream.flush()
            signal.signal(self.final_signal, signal.SIG_DFL)
            os.kill(os.getpid(), self.final_signal)

    @staticmethod
    def is_unwinding() -> bool:
        """Whether an exception is on its way that may end the process: stop() in a `finally`, say."""
        return threading.current_thread() is threading.main_thread() and sys.exc_info()[1] is not None

    def _excepthook(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        is_end = threading.current_thread() is threading.main_thread() and not _is_interactive()
        if is_end:
            self._unhandled_end, self._is_in_excepthook = self.end_of(error), True
        try:
            (self._previous or sys.__excepthook__)(kind, error, traceback)
        finally:
            self._is_in_excepthook = False


def is_exiting() -> bool:
    """Whether the interpreter ends: the main thread is through, and only what is registered for exit still runs."""
    return not threading.main_thread().is_alive()


def _is_interactive() -> bool:
    """A shell goes on after an exception that nobody handled."""
    return hasattr(sys, "ps1") or bool(sys.flags.interactive)
