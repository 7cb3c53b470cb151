"""When buckets are flushed, and how much is held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ROW_BYTES: Final = 1_100
"""What a row takes in memory, its texts apart: those are an event's, and counted with it."""
EVENT_BYTES: Final = 500
"""What an event takes while it is kept, its bytes apart."""


@dataclass(frozen=True)
class Limits:
    buckets: int = 4
    """So many connections write at once."""
    interval: float = 0.1
    """Seconds after which an instant ends, or sooner where nothing more comes. It goes on while the one before it isn't
    completed."""
    bucket_rows: int = 20_000
    """A bucket that has so many is flushed within its instant."""
    buffer_bytes: int = 128 << 20
    """With so much in memory nothing more is taken from the bus."""
    flush_seconds: float = 60.0
    """A flush that takes longer is broken off and repeated, with twice as much time."""
    slice_bytes: int = 2 << 20
    """So much is decoded at once."""
