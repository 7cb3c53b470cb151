"""What an answer lacks, gathered on the way: each reason once, with what it is about in a person's words."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from headwater.lineage.questions.answers import Limit, Why
from headwater.lineage.questions.datasets import Dataset

_SHOWN: Final = 5
"""So many snapshots of a table are named; of the others, how many there are."""


class Limits:
    """For one question."""

    def __init__(self) -> None:
        self._plain: dict[tuple[Why, str, str], None] = {}
        self._of_snapshots: dict[tuple[Why, bytes, str], dict[int | None, None]] = {}

    def add(self, why: Why, about: str, detail: str = "") -> None:
        self._plain[why, about, detail] = None

    def add_snapshot(self, why: Why, dataset: bytes, snapshot: int | None, detail: str) -> None:
        """Snapshots of a dataset with one reason become one limit."""
        self._of_snapshots.setdefault((why, dataset, detail), {})[snapshot] = None

    @property
    def datasets(self) -> Collection[bytes]:
        return {dataset for _, dataset, _ in self._of_snapshots}

    def told(self, names: Mapping[bytes, Dataset]) -> tuple[Limit, ...]:
        found = [Limit(*key) for key in self._plain]
        for (why, dataset, detail), snapshots in self._of_snapshots.items():
            label = names[dataset].label if dataset in names else dataset.hex()
            found.append(Limit(why, f"{label}{_numbers(snapshots)}", detail))
        return tuple(sorted(found, key=lambda each: (each.why.value, each.about, each.detail)))


def _numbers(snapshots: Collection[int | None]) -> str:
    known = sorted(each for each in snapshots if each is not None)
    if not known:
        return ""
    shown = ", ".join(map(str, known[:_SHOWN]))
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"@{shown}{more}"
