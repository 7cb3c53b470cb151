"""Rows that wait for an acknowledgement. Each key belongs to one bucket, so two connections never write the same row
and never wait for each other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from headwater.lineage.rows import Row


class Bucket:
    """A queue of rows between the thread that adds and the thread that writes. Positions count rows."""

    def __init__(self, most: int) -> None:
        """With `most` rows the bucket is flushed without a request."""
        self._most = most
        self._changed = threading.Condition()
        self._rows: list[Row] = []
        self._stored = 0
        self._requested = 0
        self._refused: list[tuple[int, int]] = []
        self._is_closed = False

    @property
    def stored(self) -> int:
        """The position up to which all rows are acknowledged."""
        return self._stored

    @property
    def waiting(self) -> int:
        """How many rows aren't acknowledged."""
        return len(self._rows)

    @property
    def end(self) -> int:
        """The position after the last row."""
        with self._changed:
            return self._stored + len(self._rows)

    def add(self, rows: Iterable[Row]) -> None:
        with self._changed:
            self._rows.extend(rows)
            if len(self._rows) >= self._most:
                self._changed.notify_all()

    def request_flush(self) -> int:
        """Request a flush of all present rows. Return the position after them."""
        with self._changed:
            self._requested = self._stored + len(self._rows)
            self._changed.notify_all()
            return self._requested

    def wait_until_due(self) -> list[Row] | None:
        """Wait for a flush and return all rows, without removing them. Return None when the bucket is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._is_due())
            return None if self._is_closed else self._rows[:]

    def acknowledge(self, count: int) -> None:
        """Remove the first rows: they are stored."""
        with self._changed:
            del self._rows[:count]
            self._stored += count

    def mark_refused(self, count: int) -> None:
        """Remove the first rows: the database refused one of them. The coordinator writes their events another way."""
        with self._changed:
            self._refused.append((self._stored, self._stored + count))
            del self._rows[:count]
            self._stored += count

    def was_refused(self, begin: int, end: int) -> bool:
        """Return whether a row in this range was refused. Earlier ranges are forgotten."""
        with self._changed:
            self._refused = [each for each in self._refused if each[1] > begin]
            return any(first < end for first, _ in self._refused)

    def pause(self, seconds: float) -> None:
        """Wait for some seconds, or until the bucket is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed, seconds)

    def close(self) -> None:
        """Discard the rows: the bus delivers their events again."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _is_due(self) -> bool:
        return self._requested > self._stored or len(self._rows) >= self._most


class Assigner:
    """Distributes rows to buckets by id, which is a hash of the key."""

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
