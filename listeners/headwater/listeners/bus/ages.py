"""About how old records are that nobody has read yet: the journal's growth, noted about once a second."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from headwater.events.clock import wall_micros

_MOST: Final = 2_000
_MICROS: Final = 1_000_000


class Ages:
    """One thread notes; any may ask."""

    def __init__(self) -> None:
        self._marks: tuple[tuple[int, int], ...] = ()

    def note(self, next_offset: int, micros: int) -> None:
        """The journal is that long now. Of a journal that grew for long the older marks lie farther apart."""
        before = self._marks
        if before and before[-1][0] == next_offset:  # it didn't grow: what comes next is younger than this
            before = before[:-1]
        elif len(before) >= _MOST:
            before = (*before[: _MOST // 2 : 2], *before[_MOST // 2 :])
        self._marks = (*before, (next_offset, micros))

    def of(self, offset: int) -> float:
        """Seconds since this record was appended, at most; 0 where nothing was noted before it."""
        marks = self._marks
        index = bisect_right(marks, (offset, 1 << 63)) - 1
        return max(0.0, (wall_micros() - marks[index][1]) / _MICROS) if index >= 0 else 0.0
