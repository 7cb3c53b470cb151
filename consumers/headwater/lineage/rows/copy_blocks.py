"""Rows of one kind in COPY's format that were made together: a matrix of bytes, one row of the store in each of its
rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"


class CopyBlock(NamedTuple):
    """Rows of one kind that take equally many bytes. Some may have the same id."""

    ids: Matrix
    rows: Matrix

    def __len__(self) -> int:
        return len(self.ids)

    def split(self, buckets: int) -> Iterator[tuple[int, CopyBlock]]:
        """Yield the rows of each bucket that has some, by the last bytes of their ids."""
        numbers = self.ids[:, -1] % buckets
        for number in np.unique(numbers).tolist():
            chosen = numbers == number
            yield number, CopyBlock(self.ids[chosen], self.rows[chosen])

    def lines(self) -> list[bytes]:
        """Return the bytes of each row."""
        return bytes_of(self.rows)

    def keys(self, owner: slice) -> bytes:
        """Return what rows are sorted by: the bytes of each row at `owner`, and its id."""
        return np.concatenate([self.rows[:, owner], self.ids], axis=1).tobytes()


def bytes_of(matrix: Matrix) -> list[bytes]:
    """Return each row of a matrix as bytes."""
    if not matrix.shape[1]:
        return [b""] * len(matrix)
    return np.ascontiguousarray(matrix).view(f"V{matrix.shape[1]}").ravel().tolist()  # type: ignore[no-any-return]


def matrix_of(values: list[bytes], size: int) -> Matrix:
    """Return values of so many bytes as a matrix."""
    return np.frombuffer(b"".join(values), np.uint8).reshape(len(values), size)


def sort_places(keys: bytes, count: int) -> tuple[list[int], list[int]]:
    """Return the places of keys in their order, and where in this order a key is that of the place before it."""
    found = np.frombuffer(keys, f"S{len(keys) // count}")
    order = np.argsort(found, kind="stable")
    in_order = found[order]
    return order.tolist(), (np.flatnonzero(in_order[1:] == in_order[:-1]) + 1).tolist()
