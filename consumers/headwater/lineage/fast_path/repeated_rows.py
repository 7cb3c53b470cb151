"""Rows that many events repeat: tables, jobs, job lineage. They are built once; then only times and stamps change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from headwater.lineage.rows import ColumnGroup, GroupValues, Precedence, Row, RowKind, RowTimes
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.model import NEVER, NO_TIMES, NOT_YET
from headwater.lineage.rows.values import Value, hash_key

_FIRST_POSSIBLE, _LAST_POSSIBLE = b"", b"\xff" * 34
_RUN: Final = [field.name for field in t.TABLE_LINEAGE.key].index("run")


class RepeatedRows:
    """Rows that events always write together with the same content. Only the times and stamps differ."""

    __slots__ = ("_first", "_last", "_newest", "_oldest", "_rows", "lasting")

    def __init__(self, rows: Iterable[Row]) -> None:
        distinct = list({row.id: row for row in rows}.values())
        self._rows = tuple(row for row in distinct if not row.kind.is_immutable)
        self.lasting = tuple(row for row in distinct if row.kind.is_immutable)
        """The immutable rows."""
        self._first, self._last = NOT_YET, NEVER
        self._oldest, self._newest = _LAST_POSSIBLE, _FIRST_POSSIBLE

    def record(self, time: int, stamp: bytes) -> None:
        """Record that an event wrote these rows."""
        self._first = min(self._first, time)
        self._last = max(self._last, time)
        self._oldest = min(self._oldest, stamp)
        self._newest = max(self._newest, stamp)

    def drain(self) -> Iterator[Row]:
        """Yield the mutable rows as they were written since the last call."""
        span = RowTimes(self._first, self._last, NEVER)
        for kind, number, key, fixed, _, groups, bits in self._rows:
            distinct = tuple(map(self._group, kind.groups, groups)) if groups else groups
            yield Row(kind, number, key, fixed, span if kind.has_times else NO_TIMES, distinct, bits)
        self._first, self._last = NOT_YET, NEVER
        self._oldest, self._newest = _LAST_POSSIBLE, _FIRST_POSSIBLE

    def _group(self, group: ColumnGroup, distinct: GroupValues | None) -> GroupValues | None:
        if distinct is None:
            return None
        return GroupValues(self._newest if group.precedence is Precedence.NEWEST else self._oldest, distinct.values)


class JobRows:
    """The rows that events of one job and fingerprint repeat: some in every run, table lineage once per run."""

    __slots__ = ("again", "in_runs", "lineage")

    def __init__(self, rows: Iterable[Row]) -> None:
        distinct = [row for row in rows if _is_repeatable(row.kind)]
        self.again = RepeatedRows(row for row in distinct if row.kind != t.TABLE_LINEAGE)
        self.lineage = [row for row in distinct if row.kind == t.TABLE_LINEAGE]
        self.in_runs: dict[Value, RepeatedRows] = {}

    def in_run(self, run: Value) -> RepeatedRows:
        known = self.in_runs.get(run)
        if known is None:
            if len(self.in_runs) >= _MOST_RUNS:
                self.in_runs.clear()
            known = self.in_runs[run] = RepeatedRows(_in_run(row, run) for row in self.lineage)
        return known


_MOST_RUNS: Final = 64
"""Rows of this many runs are remembered per job. Runs of a job usually follow each other."""


class PendingRepeats:
    """The repeated rows that were written since the last call of `take`."""

    def __init__(self) -> None:
        self._repeated: dict[int, RepeatedRows] = {}
        self.rows_of_runs = 0
        """How many rows of single runs were built since somebody set this to 0. They are remembered with their jobs."""

    def record(self, job_rows: JobRows, run: Value, time: int, stamp: bytes) -> None:
        if run not in job_rows.in_runs:
            self.rows_of_runs += len(job_rows.lineage)
        again, lineage = job_rows.again, job_rows.in_run(run)
        again.record(time, stamp)
        lineage.record(time, stamp)
        self._repeated[id(again)] = again
        self._repeated[id(lineage)] = lineage

    def drain(self) -> list[RepeatedRows]:
        distinct = list(self._repeated.values())
        self._repeated.clear()
        return distinct


def _is_repeatable(kind: RowKind) -> bool:
    """Return whether a row of this kind says nothing about the single event that wrote it."""
    return not kind.has_bits and kind.partition is None


def _in_run(row: Row, run: Value) -> Row:
    key = (*row.key[:_RUN], run, *row.key[_RUN + 1 :])
    return row._replace(id=hash_key(row.kind.name, key), key=key)
