"""A thread that does what others must not wait for, one thing after the other."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

from headwater.listeners.threads import DaemonThread

_LOG = logging.getLogger(__name__)
_NEVER_SECONDS: Final = 3600.0


class CompletionFlag:
    """Whether something has been done. Waiting for it takes no lock that a signal handler could find taken."""

    def __init__(self) -> None:
        self._pending = threading.Lock()
        self._pending.acquire()

    def set(self) -> None:
        self._pending.release()

    def wait(self, timeout: float) -> bool:
        """True once it is done; False if it isn't after that many seconds."""
        if not self._pending.acquire(timeout=max(0.0, timeout)):
            return False
        self._pending.release()
        return True


class DaemonWorker:
    """A daemon thread with a queue.

    It is started when it is made, because no thread can be started any more while the interpreter ends. What is handed
    to it may fail: that is logged. `tick` is called every so many seconds, if nothing else keeps the thread busy.
    """

    def __init__(self, name: str, *, tick: Callable[[], None] | None = None, every: float = _NEVER_SECONDS) -> None:
        self._name = name
        self._tick = tick
        self._every = every
        self._queue: SimpleQueue[tuple[Callable[[], object], CompletionFlag] | None] = SimpleQueue()
        DaemonThread(name, self._run).start()

    def submit(self, work: Callable[[], object]) -> CompletionFlag:
        """Have it done some time; never waits."""
        done = CompletionFlag()
        self._queue.put((work, done))
        return done

    def call(self, work: Callable[[], object], timeout: float) -> bool:
        """Have it done and wait so long for it; True if it was done by then, failed or not."""
        return self.submit(work).wait(timeout)

    def close(self) -> None:
        """The thread ends behind what it has been handed so far."""
        self._queue.put(None)

    def _run(self) -> None:
        due = time.monotonic() + self._every
        while True:
            try:
                item = self._queue.get(timeout=max(0.0, due - time.monotonic()))
            except Empty:
                due = time.monotonic() + self._every
                self._do(self._tick or (lambda: None))
                continue
            if item is None:
                return
            self._do(item[0])
            item[1].set()

    def _do(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as e:  # noqa: BLE001 - the next thing may go well
            _LOG.warning("%s: %s: %s", self._name, type(e).__name__, e)
