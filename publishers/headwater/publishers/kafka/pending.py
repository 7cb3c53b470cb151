"""What was sent and isn't acknowledged, and how far everything is."""

from __future__ import annotations

from collections import deque

from headwater.spi import SpoolPosition


class PendingRecords:
    """The account of one sender: positions go in in order, and come out in any."""

    def __init__(self, acked_position: SpoolPosition | None) -> None:
        self.acked_position = acked_position
        """Up to here all is acknowledged."""
        self._in_order: deque[SpoolPosition] = deque()
        self._acked_early: set[SpoolPosition] = set()

    def __len__(self) -> int:
        return len(self._in_order) - len(self._acked_early)

    @property
    def is_empty(self) -> bool:
        return not self._in_order

    def add(self, position: SpoolPosition) -> None:
        self._in_order.append(position)

    def acknowledge(self, position: SpoolPosition) -> None:
        waiting = self._in_order
        if waiting[0] != position:
            self._acked_early.add(position)
            return
        waiting.popleft()
        while waiting and self._acked_early and waiting[0] in self._acked_early:
            position = waiting.popleft()
            self._acked_early.remove(position)
        self.acked_position = position
