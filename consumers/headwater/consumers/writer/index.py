"""What is known to be in a store needn't be told again: shapes and datasets are a third of all rows, and the same each
time.

Only full ids are kept, so nothing new is ever taken for known. What is known holds at one epoch of the store: each
deletion, expiry and restore begins another, and whoever leaves rows out names the epoch to the transaction.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from headwater.lineage.rows import Row

MOST: Final = 200_000
"""Ids: some thirty megabytes."""


class Index:
    """One thread may ask while another tells."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self.epoch: int | None = None
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, number: object) -> bool:
        try:
            self._known.move_to_end(number)  # type: ignore[arg-type]
        except KeyError:
            self.misses += 1
            return False
        self.hits += 1
        return True

    def begin(self, epoch: int) -> None:
        """Nothing is known of another epoch but what is told from now on."""
        if epoch != self.epoch:
            self._known = OrderedDict()
            self.epoch = epoch

    def enter(self, rows: Iterable[Row], epoch: int | None) -> None:
        """What a transaction left in the store, which was committed at this epoch."""
        if epoch is None or epoch != self.epoch:
            return
        known = self._known
        for row in rows:
            if row.kind.lasting:
                known[row.id] = None
        while len(known) > self._most:
            known.popitem(last=False)
