"""Prints a line on stderr for everything that takes more than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from threading import Timer

PATIENCE_SECONDS = 2.0


class Announcement:
    """Announces an activity once it has taken too long, and how long it took."""

    def __init__(self, what: str, patience: float) -> None:
        self._what = what
        self._began = time.monotonic()
        self._said = False
        self._timer = Timer(patience, self._say)
        self._timer.daemon = True
        self._timer.start()

    def over(self, *, failed: bool = False) -> None:
        """End the announcement; a second call does nothing."""
        if self._timer.finished.is_set() and not self._said:
            return
        self._timer.cancel()
        self._timer.join()
        if self._said:
            self._said = False
            _line(f"{self._what}: {'failed after' if failed else 'done in'} {time.monotonic() - self._began:.0f} s")

    def _say(self) -> None:
        self._said = True
        _line(f"{self._what} ...")


@contextmanager
def announce(what: str, *, patience: float = PATIENCE_SECONDS) -> Generator[Announcement, None, None]:
    """Announce `what` if the block (or the time until `over`) takes longer than `patience` seconds."""
    announcement = Announcement(what, patience)
    try:
        yield announcement
    except BaseException:
        announcement.over(failed=True)
        raise
    announcement.over()


def _line(text: str) -> None:
    sys.stderr.write(f"headwater: {text}\n")  # in one piece, because servers start side by side
    sys.stderr.flush()
