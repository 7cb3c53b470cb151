"""Rows that wait for their acknowledgement. Each key has one bucket, so two connections never write the same row, and
never wait for each other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from headwater.lineage.rows import Row


class Bucket:
    """For the one who adds and the one who writes. A place in it is how many rows came before, since it was made."""

    def __init__(self, most: int) -> None:
        """With `most` rows it is due by itself."""
        self._most = most
        self._changed = threading.Condition()
        self._rows: list[Row] = []
        self._stored = 0
        self._asked = 0
        self._refused: list[tuple[int, int]] = []
        self._is_closed = False

    @property
    def stored(self) -> int:
        """How far all is acknowledged."""
        return self._stored

    @property
    def waiting(self) -> int:
        """How many rows aren't acknowledged."""
        return len(self._rows)

    @property
    def end(self) -> int:
        """How far it is filled."""
        with self._changed:
            return self._stored + len(self._rows)

    def add(self, rows: Iterable[Row]) -> None:
        with self._changed:
            self._rows.extend(rows)
            if len(self._rows) >= self._most:
                self._changed.notify_all()

    def ask(self) -> int:
        """Whatever is in it is due; how far that is."""
        with self._changed:
            self._asked = self._stored + len(self._rows)
            self._changed.notify_all()
            return self._asked

    def due(self) -> list[Row] | None:
        """Waits until something is due, and gives all that is there; None after the end. It stays in the bucket."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._is_due())
            return None if self._is_closed else self._rows[:]

    def acknowledge(self, count: int) -> None:
        """The first so many are in the store."""
        with self._changed:
            del self._rows[:count]
            self._stored += count

    def hand_over(self, count: int) -> None:
        """Something among the first so many is refused: whoever has their events stores them another way."""
        with self._changed:
            self._refused.append((self._stored, self._stored + count))
            del self._rows[:count]
            self._stored += count

    def was_refused(self, begin: int, end: int) -> bool:
        """Anything of these. What lies before is forgotten."""
        with self._changed:
            self._refused = [each for each in self._refused if each[1] > begin]
            return any(first < end for first, _ in self._refused)

    def rest(self, seconds: float) -> None:
        """For whoever writes: so long, or until the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed, seconds)

    def close(self) -> None:
        """What is in it is let go of: it comes again from the bus."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _is_due(self) -> bool:
        return self._asked > self._stored or len(self._rows) >= self._most


class Assigner:
    """Spreads rows over buckets by a hash of their keys, which is what they are called by."""

    def __init__(self, buckets: Sequence[Bucket]) -> None:
        self._buckets = buckets

    def assign(self, rows: Iterable[Row]) -> None:
        count = len(self._buckets)
        shares: list[list[Row]] = [[] for _ in range(count)]
        for row in rows:
            shares[row.id[-1] % count].append(row)
        for bucket, share in zip(self._buckets, shares, strict=True):
            if share:
                bucket.add(share)
