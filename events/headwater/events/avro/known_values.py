"""What events repeat, by the bytes that it was read from: it is made once. Memory for all of it is bounded."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from headwater.events.base import Model

MOST_MODELS: Final = 1 << 14
LONGEST_MODEL: Final = 1_000
"""Bytes of the longest model that is kept."""
MOST_BYTES: Final = 6 << 20
"""Of all spans of one field that are kept. What is made of them takes up to ten times as much."""
LONGEST_SPAN: Final = 1 << 17
_MOST_ALIKE: Final = 8


class KnownModels(dict[bytes, Model]):
    """Models by their bytes."""

    def add(self, data: bytes, model: Model) -> None:
        if len(self) >= MOST_MODELS:
            self.clear()
        if len(data) <= LONGEST_MODEL:
            self[data] = model


class KnownUuids(dict[bytes, UUID]):
    """UUIDs by their bytes: those of producers, runs and tables come again and again."""

    def __missing__(self, data: bytes) -> UUID:
        if len(self) >= MOST_MODELS:
            self.clear()
        found = self[data] = UUID(bytes=data)
        return found


class KnownSpans:
    """Values by all of their bytes, which are found without reading them. They are looked up by what they begin with:
    few begin alike and go on differently.

    What a value is depends on its own bytes only, and so does its end. So where the bytes of a value stand again, the
    same value stands.
    """

    def __init__(self, share: int = 1) -> None:
        """They may have MOST_BYTES, or this share of it: half of it is 2."""
        self._most = MOST_BYTES // share
        self._by_start: OrderedDict[bytes, deque[tuple[bytes, Any]]] = OrderedDict()
        self.size = 0
        """Bytes of all of them."""

    def __iter__(self) -> Iterator[bytes]:
        return (start + rest for start, some in self._by_start.items() for rest, _ in some)

    def find(self, start: bytes, data: bytes, at: int) -> tuple[bytes, Any] | None:
        """Return the bytes of the known value that stands here, without those that it begins with, and the value."""
        for known in self._by_start.get(start, ()):
            if data.startswith(known[0], at):
                return known
        return None

    def add(self, start: bytes, rest: bytes, value: Any) -> None:
        """Add a value. `rest` are its bytes without those that it begins with."""
        size = len(start) + len(rest)
        if size > LONGEST_SPAN:
            return
        alike = self._by_start.setdefault(start, deque())
        alike.append((rest, value))
        self.size += size
        if len(alike) > _MOST_ALIKE:
            self.size -= len(start) + len(alike.popleft()[0])
        while self.size > self._most:
            oldest, some = self._by_start.popitem(last=False)
            self.size -= sum(len(oldest) + len(known) for known, _ in some)
