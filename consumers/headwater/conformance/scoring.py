"""Sums up findings: how many facts of each scenario were seen, missed, wrong, and silent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from headwater.conformance.verdicts import Finding, Verdict

TOTAL: Final = "all"


@dataclass(frozen=True)
class Score:
    """The facts of one scenario, or of all."""

    scenario: str
    seen: int
    missed: int
    wrong: int
    silent: int

    @property
    def facts(self) -> int:
        """All of them."""
        return self.seen + self.missed + self.wrong + self.silent


def scores(findings: Iterable[Finding]) -> list[Score]:
    """Return a score for each scenario, and last one for all of them."""
    counts: dict[str, Counter[Verdict]] = {}
    for each in findings:
        counts.setdefault(each.scenario, Counter())[each.verdict] += 1
    total: Counter[Verdict] = Counter()
    for count in counts.values():
        total.update(count)
    return [_score(name, count) for name, count in (*counts.items(), (TOTAL, total))]


def _score(scenario: str, count: Counter[Verdict]) -> Score:
    return Score(
        scenario, *(count[verdict] for verdict in (Verdict.SEEN, Verdict.MISSED, Verdict.WRONG, Verdict.SILENT))
    )
