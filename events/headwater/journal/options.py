"""How a journal behaves: one frozen, validated value."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from headwater.errors import ConfigurationError
from headwater.journal.record import LARGEST_BODY

_KIB = 1024
_SMALLEST_SEGMENT = 4 * _KIB
_USUAL_SEGMENT = 8 * _KIB * _KIB


class Fsync(str, Enum):
    """When records are brought to the disk. With any of them an acknowledged record survives the process's death."""

    NONE = "none"
    INTERVAL = "interval"
    """In the background; a machine that dies takes the last interval with it."""
    ALWAYS = "always"
    """Before it is acknowledged; those who append at once share one fsync."""


def wall_clock() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


@dataclass(frozen=True, kw_only=True)
class JournalOptions:
    """Sizes in bytes, durations in seconds. `None` for a limit is no limit."""

    fsync: Fsync = Fsync.INTERVAL
    fsync_interval: float = 1.0
    segment_bytes: int | None = None
    """8 MiB, or an eighth of `max_bytes` where that is less."""
    max_bytes: int | None = 1024 * _KIB * _KIB
    """Above it the oldest segment is dropped; cursors behind it are informed of what they lost."""
    max_age: float | None = None
    """Segments whose newest record is older are dropped."""
    max_record_bytes: int = _KIB * _KIB
    drop_consumed: bool = False
    """Drop what every durable cursor has committed (with no cursor at all: nothing)."""
    reserve_bytes: int = 64 * _KIB
    """Room set aside on the device for `append_emergency`; 0 for none."""
    clock: Callable[[], int] = wall_clock
    """Microseconds; the append times of one writer never go back, whatever it says."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fsync", _known_fsync(self.fsync))
        if self.fsync_interval <= 0:
            raise ConfigurationError(f"fsync_interval must be above 0 seconds, not {self.fsync_interval}")
        if not 0 < self.max_record_bytes <= LARGEST_BODY:
            raise ConfigurationError(f"max_record_bytes must be 1 to {LARGEST_BODY}, not {self.max_record_bytes}")
        if self.max_age is not None and self.max_age <= 0:
            raise ConfigurationError(f"max_age must be above 0 seconds, not {self.max_age}")
        if self.reserve_bytes < 0:
            raise ConfigurationError(f"reserve_bytes must be 0 or more, not {self.reserve_bytes}")
        self._check_sizes()

    def _check_sizes(self) -> None:
        if self.max_bytes is not None and self.max_bytes < 2 * _SMALLEST_SEGMENT:
            raise ConfigurationError(f"max_bytes must be at least {2 * _SMALLEST_SEGMENT}, not {self.max_bytes}")
        if self.segment_bytes is not None and self.segment_bytes < 1:
            raise ConfigurationError(f"segment_bytes must be above 0, not {self.segment_bytes}")
        if self.max_bytes is not None and 2 * self.segment_size > self.max_bytes:
            raise ConfigurationError(
                f"segment_bytes ({self.segment_size}) must be at most half of max_bytes ({self.max_bytes}): "
                "whole segments are dropped"
            )

    @property
    def segment_size(self) -> int:
        if self.segment_bytes is not None:
            return self.segment_bytes
        if self.max_bytes is None:
            return _USUAL_SEGMENT
        return max(_SMALLEST_SEGMENT, min(_USUAL_SEGMENT, self.max_bytes // 8))


def _known_fsync(value: Fsync | str) -> Fsync:
    try:
        return Fsync(value)
    except ValueError:
        words = ", ".join(each.value for each in Fsync)
        raise ConfigurationError(f"fsync must be one of {words}, not {value!r}") from None
