"""The thread that does for a journal what its appenders shall not wait for."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_LOG = logging.getLogger(__name__)


class BackgroundWorker:
    """Calls `work` every `interval` seconds and whenever it is woken, until it is stopped."""

    def __init__(self, name: str, work: Callable[[], None], interval: float) -> None:
        self._work = work
        self._interval = interval
        self._woken = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        self._woken.set()

    def stop(self, timeout: float) -> bool:
        """Let it finish what it is at; False if it still hasn't."""
        self._stopped = True
        self._woken.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopped:
            self._woken.wait(self._interval)
            self._woken.clear()
            if not self._stopped:
                try:
                    self._work()
                except Exception:  # noqa: BLE001 - logged; a round that fails must not be the last
                    _LOG.exception("%s", self._thread.name)
