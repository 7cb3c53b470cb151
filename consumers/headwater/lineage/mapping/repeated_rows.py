"""Rows that many events repeat: tables, jobs, job lineage. They are built once; then only times and stamps change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from headwater.lineage.rows import ColumnGroup, GroupValues, Precedence, Row, RowTimes, merge_by_key
from headwater.lineage.rows.copy_format import copy_row
from headwater.lineage.rows.model import NEVER, NO_TIMES, NOT_YET

_FIRST_POSSIBLE, _LAST_POSSIBLE = b"", b"\xff" * 34


class RepeatedRows:
    """Rows that events always write together with the same content. Only the times and stamps differ."""

    __slots__ = ("_copies", "_first", "_last", "_newest", "_oldest", "_rows", "lasting")

    def __init__(self, rows: Iterable[Row]) -> None:
        distinct = merge_by_key(rows).values()
        self._rows = tuple(row for row in distinct if not row.kind.is_immutable)
        self.lasting: Final = tuple(row for row in distinct if row.kind.is_immutable)
        """The immutable rows."""
        self._copies: tuple[bytes, ...] | None = None
        self._forget()

    def _forget(self) -> None:
        self._first, self._last = NOT_YET, NEVER
        self._oldest, self._newest = _LAST_POSSIBLE, _FIRST_POSSIBLE

    def __len__(self) -> int:
        return len(self._rows) + len(self.lasting)

    def lasting_copies(self) -> tuple[bytes, ...]:
        """Return the immutable rows in COPY's format."""
        if self._copies is None:
            self._copies = tuple([copy_row(row) for row in self.lasting])
        return self._copies

    def record(self, time: int, stamp: bytes) -> None:
        """Record that an event wrote these rows."""
        self._first = min(self._first, time)
        self._last = max(self._last, time)
        self._oldest = min(self._oldest, stamp)
        self._newest = max(self._newest, stamp)

    def drain(self) -> Iterator[Row]:
        """Yield the mutable rows as they were written since the last call."""
        span = RowTimes(self._first, self._last, NEVER)
        for kind, number, key, maxima, _, groups, bits in self._rows:
            stamped = tuple(map(self._group, kind.groups, groups)) if groups else groups
            yield Row(kind, number, key, maxima, span if kind.has_times else NO_TIMES, stamped, bits)
        self._forget()

    def _group(self, group: ColumnGroup, values: GroupValues | None) -> GroupValues | None:
        if values is None:
            return None
        return GroupValues(self._newest if group.precedence is Precedence.NEWEST else self._oldest, values.values)


class PendingRepeats:
    """The repeated rows that were written since the last call of `drain`."""

    def __init__(self) -> None:
        self._pending: dict[int, RepeatedRows] = {}

    def record(self, rows: RepeatedRows, time: int, stamp: bytes) -> None:
        rows.record(time, stamp)
        self._pending[id(rows)] = rows

    def drain(self) -> list[RepeatedRows]:
        pending = list(self._pending.values())
        self._pending.clear()
        return pending
