"""Holds the limits of a local log in partitions that nobody writes to, on an executor: no batch waits for it."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Executor, Future
from typing import Final

from headwater.errors import HeadwaterError
from headwater.journal import LocalLog

_LOG = logging.getLogger(__name__)
_INTERVAL_SECONDS: Final = 3600.0
"""Seconds between rounds."""


class LogMaintenance:
    """Runs one round at a time: when it is first asked, and then once an hour."""

    def __init__(self, log: LocalLog, executor: Executor) -> None:
        self._log = log
        self._executor = executor
        self._stopped = threading.Event()
        self._round: Future[None] | None = None
        self._started = float("-inf")

    def run_if_due(self) -> None:
        """Start a round if the last one is long enough ago. Called after each batch; costs a look at the clock."""
        now = time.monotonic()
        if now - self._started < _INTERVAL_SECONDS or (self._round is not None and not self._round.done()):
            return
        self._started = now
        self._round = self._executor.submit(self._run)

    def stop(self) -> None:
        """Start no other round, and log nothing more."""
        self._stopped.set()

    def _run(self) -> None:
        try:
            dropped = 0 if self._stopped.is_set() else self._log.trim()
        except (HeadwaterError, OSError) as e:
            if not self._stopped.is_set():
                _LOG.info("the limits of the log %s can't be held now: %s", self._log.directory, e)
            return
        if dropped:
            _LOG.info("%d segments of %s were beyond its limits, and are dropped", dropped, self._log.directory)
