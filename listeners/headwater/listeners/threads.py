"""Threads of ours in somebody's driver: daemons all, because none may keep a process from ending."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_LOG = logging.getLogger(__name__)


class DaemonThread:
    """A thread that may never be started, and that nobody waits for longer than he says."""

    def __init__(self, name: str, run: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, timeout: float) -> bool:
        """Whether it is over after that many seconds, or never began."""
        if self._thread.ident is not None:
            self._thread.join(max(0.0, timeout))
        return not self._thread.is_alive()


class PeriodicThread:
    """Does something again and again on a thread of its own, every so many seconds or when it is woken: the first time
    after so long, or `at_once`. A round that fails is logged, if it fails in a new way, and isn't the last."""

    def __init__(self, name: str, do: Callable[[], None], every: float, *, at_once: bool = False) -> None:
        self._name = name
        self._task = do
        self._every = every
        self._at_once = at_once
        self._wake_event = threading.Event()
        self._is_stopping = False
        self._last = ""
        self._thread = DaemonThread(name, self._run)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._wake_event.set()

    def stop(self, timeout: float = 0.0) -> bool:
        """No round begins after this; whether the last one was over in that many seconds."""
        self._is_stopping = True
        self._wake_event.set()
        return self._thread.join(timeout)

    def _run(self) -> None:
        if self._at_once:
            self._run_once()
        while not self._is_stopping:
            self._wake_event.wait(self._every)
            self._wake_event.clear()
            if not self._is_stopping:
                self._run_once()

    def _run_once(self) -> None:
        try:
            self._task()
            self._last = ""
        except Exception as e:  # noqa: BLE001 - logged
            words = f"{type(e).__name__}: {e}"
            if words != self._last:
                _LOG.warning("%s: %s", self._name, words)
            self._last = words
