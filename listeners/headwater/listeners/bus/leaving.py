"""What becomes of a driver's spool when the driver ends: it goes, is handed over, or stays for who comes next."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from headwater.journal import StorageError
from headwater.listeners.bus.spool import Spool

_LOG = logging.getLogger(__name__)
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
