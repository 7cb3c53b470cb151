"""Rows that events tell again and again: tables, jobs, shapes of writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from headwater.lineage.rows import Group, Keep, Kind, Row, Span, Told
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.kinds import NEVER, NO_SPAN, NOT_YET
from headwater.lineage.rows.values import Value, hash_of

_FIRST_POSSIBLE, _LAST_POSSIBLE = b"", b"\xff" * 34
_RUN: Final = [field.name for field in t.TABLE_LINEAGE.key].index("run")


class Again:
    """Rows that are always told together, with the same content: only when differs."""

    __slots__ = ("_first", "_last", "_newest", "_oldest", "_rows", "lasting")

    def __init__(self, rows: Iterable[Row]) -> None:
        told = list({row.id: row for row in rows}.values())
        self._rows = tuple(row for row in told if not row.kind.lasting)
        self.lasting = tuple(row for row in told if row.kind.lasting)
        """Those that are the same whenever they were told."""
        self._first, self._last = NOT_YET, NEVER
        self._oldest, self._newest = _LAST_POSSIBLE, _FIRST_POSSIBLE

    def tell(self, time: int, stamp: bytes) -> None:
        self._first = min(self._first, time)
        self._last = max(self._last, time)
        self._oldest = min(self._oldest, stamp)
        self._newest = max(self._newest, stamp)

    def take(self) -> Iterator[Row]:
        """All but the lasting ones, as they were told since this was asked last."""
        span = Span(self._first, self._last, NEVER)
        for kind, number, key, fixed, _, groups, bits in self._rows:
            told = tuple(map(self._group, kind.groups, groups)) if groups else groups
            yield Row(kind, number, key, fixed, span if kind.mortal else NO_SPAN, told, bits)
        self._first, self._last = NOT_YET, NEVER
        self._oldest, self._newest = _LAST_POSSIBLE, _FIRST_POSSIBLE

    def _group(self, group: Group, told: Told | None) -> Told | None:
        if told is None:
            return None
        return Told(self._newest if group.keep is Keep.NEWEST else self._oldest, told.values)


class Telling:
    """What events of one job and shape tell again: most of it in each run, and in which run."""

    __slots__ = ("again", "in_runs", "lineage")

    def __init__(self, rows: Iterable[Row]) -> None:
        told = [row for row in rows if _is_repeatable(row.kind)]
        self.again = Again(row for row in told if row.kind != t.TABLE_LINEAGE)
        self.lineage = [row for row in told if row.kind == t.TABLE_LINEAGE]
        self.in_runs: dict[Value, Again] = {}

    def in_run(self, run: Value) -> Again:
        known = self.in_runs.get(run)
        if known is None:
            if len(self.in_runs) >= _MOST_RUNS:
                self.in_runs.clear()
            known = self.in_runs[run] = Again(_in_run(row, run) for row in self.lineage)
        return known


_MOST_RUNS: Final = 64
"""So many of each are remembered: runs of one job come one after the other."""


class Agains:
    """Those that were told since they were taken last."""

    def __init__(self) -> None:
        self._told: dict[int, Again] = {}

    def tell(self, telling: Telling, run: Value, time: int, stamp: bytes) -> None:
        again, lineage = telling.again, telling.in_run(run)
        again.tell(time, stamp)
        lineage.tell(time, stamp)
        self._told[id(again)] = again
        self._told[id(lineage)] = lineage

    def take(self) -> list[Again]:
        told = list(self._told.values())
        self._told.clear()
        return told


def _is_repeatable(kind: Kind) -> bool:
    """Whether such a row says nothing of the one event that tells it."""
    return not kind.bits and kind.partition is None


def _in_run(row: Row, run: Value) -> Row:
    key = (*row.key[:_RUN], run, *row.key[_RUN + 1 :])
    return row._replace(id=hash_of(row.kind.name, key), key=key)
