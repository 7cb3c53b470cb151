"""UUIDs that sort by when they were made (version 7 of RFC 9562)."""

from __future__ import annotations

import os
import time
from uuid import UUID


def uuid7(millis: int | None = None, random: bytes | None = None) -> UUID:
    """A new UUID of version 7; both arguments are for tests."""
    at = time.time_ns() // 1_000_000 if millis is None else millis
    noise = int.from_bytes(os.urandom(10) if random is None else random, "big")
    high, low = noise >> 68, noise & ((1 << 62) - 1)
    return UUID(int=(at & ((1 << 48) - 1)) << 80 | 0x7 << 76 | (high & 0xFFF) << 64 | 0b10 << 62 | low)
