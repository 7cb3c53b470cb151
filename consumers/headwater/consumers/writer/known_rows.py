"""Remembers which rows the store has already. Job lineage, datasets and places repeat all the time.

Only complete ids are remembered, so a new row is never taken for a known one. What is known holds for one epoch of the
store: each deletion, expiry and restore starts another. A transaction that omits rows names the epoch.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

MAX_ROWS: Final = 200_000
"""How many ids are remembered: about thirty megabytes."""


class KnownRows:
    """Ids of rows that the store has. One thread may ask while another adds."""

    def __init__(self, most: int = MAX_ROWS) -> None:
        self._most = most
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self.epoch: int | None = None

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, number: object) -> bool:
        try:
            self._known.move_to_end(number)  # type: ignore[arg-type]
        except KeyError:
            return False
        return True

    def set_epoch(self, epoch: int) -> None:
        """Forget everything if the store's epoch changed."""
        if epoch != self.epoch:
            self._known = OrderedDict()
            self.epoch = epoch

    def forget(self) -> None:
        """Forget everything: the store lost rows."""
        self._known = OrderedDict()
        self.epoch = None

    def add(self, ids: Iterable[bytes], epoch: int | None) -> None:
        """Add the ids of immutable rows that a transaction committed at this epoch."""
        if epoch is None or epoch != self.epoch:
            return
        known = self._known
        for number in ids:
            known[number] = None
        while len(known) > self._most:
            known.popitem(last=False)
