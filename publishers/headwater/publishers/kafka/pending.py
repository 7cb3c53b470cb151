"""What was sent and isn't acknowledged, and how far everything is."""

from __future__ import annotations

from collections import deque

from headwater.spi import Position


class Pending:
    """The account of one sender: positions go in in order, and come out in any."""

    def __init__(self, answer: Position | None) -> None:
        self.answer = answer
        """Up to here all is acknowledged."""
        self._waiting: deque[Position] = deque()
        self._out: set[Position] = set()

    def __len__(self) -> int:
        return len(self._waiting) - len(self._out)

    @property
    def is_over(self) -> bool:
        return not self._waiting

    def sent(self, position: Position) -> None:
        self._waiting.append(position)

    def acknowledged(self, position: Position) -> None:
        waiting = self._waiting
        if waiting[0] != position:
            self._out.add(position)
            return
        waiting.popleft()
        while waiting and self._out and waiting[0] in self._out:
            position = waiting.popleft()
            self._out.remove(position)
        self.answer = position
