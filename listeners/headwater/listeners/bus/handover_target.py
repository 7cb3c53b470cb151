"""Hands an undelivered spool over when a driver ends whose disk is lost with it (`spark.headwater.spool.handover`)."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from headwater.journal import StorageError
from headwater.listeners.bus.handover import hand_over
from headwater.listeners.bus.remote_files import Connect, RemoteFilesWithTimeout
from headwater.listeners.bus.remote_spools import move_to_remote
from headwater.listeners.bus.spool import Spool, spool_places
from headwater.listeners.bus.spool_claimer import SpoolClaimer
from headwater.listeners.settings import PREFIX, Settings

_LOG = logging.getLogger(__name__)


class HandoverTarget:
    """A path of this machine, a URI that Hadoop knows, or nothing."""

    def __init__(self, settings: Settings, connect: Connect | None) -> None:
        self.path = settings.handover_path
        self._timeout = settings.spool_handover_timeout
        self._remote = _open_remote(settings.handover_uri, connect)
        self.claimer: SpoolClaimer | None = None
        """Takes up what others handed over, where that isn't found as a path is."""
        if self._remote is not None:
            self.claimer = SpoolClaimer(self._remote.uri, self._remote, lambda: _choose_copy_directory(settings))

    def begin_stop(self) -> None:
        """What is handed over now has time of its own, and no more."""
        if self._remote is not None:
            self._remote.until(time.monotonic() + self._timeout)

    def hand_over(self, spool: Path) -> bool:
        """Take a closed spool there, whole or not at all; whether it is there."""
        if self._remote is not None:
            return move_to_remote(spool, self._remote)
        return self.path is not None and hand_over(spool, self.path, self._timeout)

    def close(self) -> None:
        if self._remote is not None:
            self._remote.close()


def _open_remote(uri: str | None, connect: Connect | None) -> RemoteFilesWithTimeout | None:
    if uri is None:
        return None
    if connect is None:
        _LOG.warning("%sspool.handover: %s takes the JVM of a driver, and there is none here", PREFIX, uri)
        return None
    return RemoteFilesWithTimeout(uri, connect)


def _choose_copy_directory(settings: Settings) -> Path | None:
    return next((place for place in spool_places(settings) if place.is_dir() and os.access(place, os.W_OK)), None)


_SHORTEST_CLOSE: Final = 0.2


def leave_spool(spool: Spool | None, hand_over: Callable[[Path], object], deadline: float) -> bool:
    """Close the spool, and remove it or hand it over; whether everything in it is delivered."""
    if spool is None:
        return True
    try:
        is_delivered = spool.is_delivered()
        is_closed = spool.close(max(_SHORTEST_CLOSE, deadline - time.monotonic()))
    except StorageError as e:
        _LOG.warning("closing the spool failed: %s", e)
        return False
    if is_delivered and is_closed:
        spool.remove()
    elif is_closed:
        hand_over(spool.directory)
    return is_delivered
