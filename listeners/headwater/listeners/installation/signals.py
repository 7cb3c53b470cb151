"""The signals that end a process: what is recorded of them, and that users' own handlers do what they would without us.

Where nobody handles one, ours tells the end and lets the process die of it. Where somebody does, it is theirs to say
what happens: ours stands around it and looks only whether it raised, because who exits out of a handler was killed by
the signal, while who comes back from it goes on. A handler that is set after ours is seen in the traceback of what it
raised, where somebody shows us that.
"""

from __future__ import annotations

import functools
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any, Final

from headwater.events.jobs import JobStatus
from headwater.listeners.jobs import RunEnd
from headwater.listeners.jobs.run_end import exit_code_of

_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
Handler = Callable[[int, FrameType | None], Any]


class SignalWatcher:
    """One for the process. `on_kill` is called when a signal ends it that nobody else handles. From the main thread
    only anything can be put in place or taken away."""

    def __init__(self, on_kill: Callable[[RunEnd], None]) -> None:
        self.handler_end: RunEnd | None = None
        """How the process ends if what a user's handler raised ends it."""
        self._on_kill = on_kill
        self._user_handlers: dict[signal.Signals, tuple[Handler, Handler]] = {}
        """Users' handlers, and what stands around them."""

    def watch(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for each in _SIGNALS:
            handler = signal.getsignal(each)
            if handler is signal.SIG_DFL:
                signal.signal(each, self._die)
            elif (
                callable(handler)
                and handler != self._die
                and handler is not self._user_handlers.get(each, (None, None))[1]
            ):
                around = self._wrap(handler)
                self._user_handlers[each] = handler, around
                signal.signal(each, around)

    def unwatch(self) -> None:
        """Give back what is still ours."""
        if threading.current_thread() is not threading.main_thread():
            return
        for each in _SIGNALS:
            handler = signal.getsignal(each)
            theirs, around = self._user_handlers.pop(each, (None, None))
            if handler == self._die:
                signal.signal(each, signal.SIG_DFL)
            elif theirs is not None and handler is around:
                signal.signal(each, theirs)

    def end_of(self, error: BaseException | None) -> RunEnd | None:
        """How something ended that this exception left, if a handler of a signal raised it."""
        codes = {code: each for each in _SIGNALS for code in self._codes(each)}
        traceback = None if error is None else error.__traceback__
        while traceback is not None:
            number = codes.get(traceback.tb_frame.f_code)
            if number is not None:
                return _killed_by(number, error)
            traceback = traceback.tb_next
        return None

    def _codes(self, each: signal.Signals) -> Iterator[CodeType]:
        for handler in (signal.getsignal(each), *self._user_handlers.get(each, ())):
            function = getattr(handler, "func", handler)  # of a functools.partial
            code = getattr(function, "__code__", None) or getattr(
                vars(type(function)).get("__call__"), "__code__", None
            )
            if isinstance(code, CodeType) and handler != self._die:
                yield code

    def _wrap(self, theirs: Handler) -> Handler:
        @functools.wraps(theirs)
        def handle(number: int, frame: FrameType | None) -> Any:
            try:
                return theirs(number, frame)
            except BaseException as e:
                self.handler_end = _killed_by(number, e)
                raise

        return handle

    def _die(self, number: int, frame: FrameType | None) -> None:
        """Tell the end, and then die of the signal as if nobody had handled it. A second one doesn't wait for that."""
        if signal.getsignal(number) != self._die:  # called by somebody's handler, which may well go on after this
            return
        self.unwatch()
        try:
            self._on_kill(_killed_by(number, None))
        finally:
            os.kill(os.getpid(), number)


def _killed_by(number: int, error: BaseException | None) -> RunEnd:
    code = exit_code_of(error) if isinstance(error, SystemExit) else None
    return RunEnd(status=JobStatus.KILLED, signal=int(number), exit_code=code)
