"""What a local log wants done now and then, which no batch shall wait for: limits held, old segments compacted.

It is done in small portions with rests between them, so that the processor and the interpreter are free for the job.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Executor, Future
from typing import Final

from headwater.errors import HeadwaterError
from headwater.journal import Journal, LocalLog

_LOG = logging.getLogger(__name__)
_EVERY: Final = 60.0
"""Seconds between looks at the own partition."""
_ALL_EVERY: Final = 3600.0
"""Seconds between looks at partitions that nobody writes to."""
_REST: Final = 0.005
"""Seconds before each block of 128 KiB, which takes about as long."""


class Upkeep:
    """Rounds on an executor, of which there is one at a time."""

    def __init__(self, log: LocalLog, executor: Executor) -> None:
        self._log = log
        self._executor = executor
        self._stopped = threading.Event()
        self._round: Future[None] | None = None
        self._looked = self._looked_at_all = float("-inf")

    def look(self, journal: Journal) -> None:
        """Begin a round if it is time for one. Called after each batch; costs a look at the clock."""
        now = time.monotonic()
        if now - self._looked < _EVERY or (self._round is not None and not self._round.done()):
            return
        self._looked = now
        all_of_them = now - self._looked_at_all >= _ALL_EVERY
        if all_of_them:
            self._looked_at_all = now
        self._round = self._executor.submit(self._run, journal, all_of_them=all_of_them)

    def stop(self) -> None:
        """Let a round end soon; whoever closes the journal waits for what is left of it."""
        self._stopped.set()

    def _run(self, journal: Journal, *, all_of_them: bool) -> None:
        try:
            while journal.compact(self._may_go_on) is not None:
                pass
            if all_of_them:
                self._tend()
        except (HeadwaterError, OSError) as e:
            if not self._stopped.is_set():
                _LOG.info("the log %s can't be kept in order now: %s", self._log.directory, e)

    def _tend(self) -> None:
        done = self._log.tend(self._may_go_on)
        if done.dropped:
            _LOG.info("%d segments of %s were beyond its limits, and are dropped", done.dropped, self._log.directory)
        if done.saved:
            _LOG.info("%d bytes of %s were saved by compaction", done.saved, self._log.directory)

    def _may_go_on(self) -> bool:
        return not self._stopped.wait(_REST)
