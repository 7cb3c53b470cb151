"""Limits of answers and of what is read for one.

Each reason why an answer may be incomplete is collected once, with its subject in people's words. Rows are read in
portions: small at first, so that who needs few soon has them; then larger, so that statements are few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, TypeVar

from headwater.lineage.questions.answers import AnswerLimit, LimitReason
from headwater.lineage.questions.datasets import Dataset

T = TypeVar("T")
_FIRST: Final = 64
_LARGEST: Final = 8_192
_GROWTH: Final = 8


def growing_portions(rows: Iterable[T]) -> Iterator[list[T]]:
    """Yield the rows as lists, none of them empty."""
    left, size = iter(rows), _FIRST
    while portion := list(islice(left, size)):
        yield portion
        size = min(size * _GROWTH, _LARGEST)


_SHOWN: Final = 5
"""How many snapshots of a table a limit names; of the others it tells the number."""
_HIDDEN_EDGES: Final = {
    LimitReason.DELETED: "lineage of their jobs or runs was deleted",
    LimitReason.OMITTED: "an option of a table's catalog switches them off",
}


class LimitCollector:
    """Collects limits for one question."""

    def __init__(self) -> None:
        self._plain: dict[tuple[LimitReason, str, str], None] = {}
        self._hidden_edges: Counter[LimitReason] = Counter()
        self._of_snapshots: dict[tuple[LimitReason, bytes, str], dict[int | None, None]] = {}

    def add(self, why: LimitReason, about: str, detail: str = "") -> None:
        self._plain[why, about, detail] = None

    def add_snapshot(self, why: LimitReason, dataset: bytes, snapshot: int | None, detail: str) -> None:
        """Add a limit of a snapshot. Snapshots of one dataset with the same reason become one limit."""
        self._of_snapshots.setdefault((why, dataset, detail), {})[snapshot] = None

    def add_hidden_edges(self, why: Mapping[LimitReason, int]) -> None:
        """Count edges between tables that aren't shown, by the reason: together they are one limit."""
        self._hidden_edges.update(why)

    @property
    def datasets(self) -> Collection[bytes]:
        return {dataset for _, dataset, _ in self._of_snapshots}

    def as_limits(self, names: Mapping[bytes, Dataset]) -> tuple[AnswerLimit, ...]:
        found = [AnswerLimit(*key) for key in self._plain]
        found += [AnswerLimit(why, f"{n} edges", _HIDDEN_EDGES[why]) for why, n in self._hidden_edges.items() if n]
        for (why, dataset, detail), snapshots in self._of_snapshots.items():
            label = names[dataset].label if dataset in names else dataset.hex()
            found.append(AnswerLimit(why, f"{label}{_numbers(snapshots)}", detail))
        return tuple(sorted(found, key=lambda limit: (limit.why.value, limit.about, limit.detail)))


def _numbers(snapshots: Collection[int | None]) -> str:
    known = sorted(snapshot for snapshot in snapshots if snapshot is not None)
    if not known:
        return ""
    shown = ", ".join(map(str, known[:_SHOWN]))
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"@{shown}{more}"
