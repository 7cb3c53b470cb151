"""How the bus paces itself. Nobody configures this; tests make it quicker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headwater.journal import Files
from headwater.journal.files import OS_FILES

DEAD_SPOOLS: Final = 4
Connect = Callable[[str], Any]
"""Opens the `HandoverDirectory` that a URI names. May take long, and raise anything."""


@dataclass(frozen=True, kw_only=True)
class BusOptions:
    """Durations in seconds, sizes in bytes as events are encoded."""

    batch_count: int = 500
    batch_bytes: int = 1 << 20
    """A durable listener is handed at most so much at once, or one record that is larger."""
    outstanding_count: int = 20_000
    outstanding_bytes: int = 32 << 20
    """A durable listener is handed no more while it hasn't answered for so much."""
    queue_count: int = 10_000
    queue_bytes: int = 8 << 20
    """So much may wait for a plain listener; what comes then is missed by it."""
    first_backoff: float = 0.1
    longest_backoff: float = 30.0
    attempts: int = 5
    """After so many failures upon another, that no TransientError explains, a listener is set aside."""
    suspended_seconds: float = 120.0
    """For so long."""
    linger_seconds: float = 0.01
    """After a small batch a worker waits so long before it looks again: events come in bursts, and being woken for each
    would cost the one who emits them more than the reporting."""
    flush_slice: float = 0.25
    commit_interval: float = 0.5
    keep_interval: float = 1.0
    look_interval: float = 60.0
    """Between two looks for what dead drivers left."""
    stall_seconds: float = 60.0
    """A dead driver's spool that gets no further for so long is put back, and the next one is tried."""
    dead_spools: int | None = DEAD_SPOOLS
    """What dead drivers left may take so many times `spool.max.bytes`; above it the oldest goes. None: whatever it
    takes."""
    is_ours: Callable[[Path], bool] = lambda _: True
    """Whether a spool of a dead driver is any business of this bus."""
    only: frozenset[str] | None = None
    """The listeners that this bus serves, of those that the configuration names. None: all."""
    has_shipper: bool = True
    """Whether listeners may work in a process of their own; the shipper's own bus, and a command's, has no other."""
    files: Files = OS_FILES
    connect: Connect | None = None
    """Opens a URI of Hadoop's that `spool.handover` names, by whatever JVM there is."""
    on_thread_start: Callable[[], object] = lambda: None
    """Called on each listener's thread before it does anything else."""
