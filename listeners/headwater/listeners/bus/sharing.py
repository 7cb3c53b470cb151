"""`spark.headwater.spool.handover`: where what isn't delivered goes when a driver ends whose disk goes with it."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

from headwater.listeners.bus.handed import hand_over_there
from headwater.listeners.bus.handover import hand_over
from headwater.listeners.bus.remote import Connect, Patient
from headwater.listeners.bus.spool import spool_places
from headwater.listeners.bus.taking import Taker
from headwater.listeners.settings import PREFIX, Settings

_LOG = logging.getLogger(__name__)


class Sharing:
    """A path of this machine, a URI that Hadoop knows, or nothing."""

    def __init__(self, settings: Settings, connect: Connect | None) -> None:
        self.path = settings.handover_path
        self._timeout = settings.spool_handover_timeout
        self._remote = _remote(settings.handover_uri, connect)
        self.taker: Taker | None = None
        """Takes up what others handed over, where that isn't found as a path is."""
        if self._remote is not None:
            self.taker = Taker(self._remote.uri, self._remote, lambda: _place_for_copies(settings))

    def begin_stop(self) -> None:
        """What is handed over now has time of its own, and no more."""
        if self._remote is not None:
            self._remote.until(time.monotonic() + self._timeout)

    def hand_over(self, spool: Path) -> bool:
        """Take a closed spool there, whole or not at all; whether it is there."""
        if self._remote is not None:
            return hand_over_there(spool, self._remote)
        return self.path is not None and hand_over(spool, self.path, self._timeout)

    def close(self) -> None:
        if self._remote is not None:
            self._remote.close()


def _remote(uri: str | None, connect: Connect | None) -> Patient | None:
    if uri is None:
        return None
    if connect is None:
        _LOG.warning("%sspool.handover: %s takes the JVM of a driver, and there is none here", PREFIX, uri)
        return None
    return Patient(uri, connect)


def _place_for_copies(settings: Settings) -> Path | None:
    return next((place for place in spool_places(settings) if place.is_dir() and os.access(place, os.W_OK)), None)
