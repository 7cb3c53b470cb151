"""Verdicts about single facts, and how several claims about one fact become a verdict.

Sums up findings: how many facts of each scenario were seen, missed, wrong, and silent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Verdict(Enum):
    """How a fact was reported. A wrong claim counts more than a right one beside it."""

    SEEN = "seen"
    MISSED = "missed"
    WRONG = "wrong"
    SILENT = "silent"
    """Nothing at all was reported of the step."""


WHOLE_SCENARIO: Final = "-"
"""Stands for a step where a fact is about all runs of a scenario."""


@dataclass(frozen=True)
class Finding:
    """The verdict about one fact, and why it isn't `seen`."""

    scenario: str
    step: str
    fact: str
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True)
class FactResult:
    """A verdict before it is known of which scenario and step it is."""

    fact: str
    verdict: Verdict
    reason: str = ""


def compare_sets(fact: str, expected: Collection[str], claimed: Collection[str], what: str) -> FactResult:
    """Judge a set: what is claimed beyond it is wrong, what isn't claimed is missed."""
    extra, absent = sorted(set(claimed) - set(expected)), sorted(set(expected) - set(claimed))
    if extra:
        return FactResult(
            fact, Verdict.WRONG, f"{what} {_list_text(extra)} reported, true is {_list_text(sorted(expected))}"
        )
    if absent:
        return FactResult(fact, Verdict.MISSED, f"{what} {_list_text(absent)} isn't reported")
    return FactResult(fact, Verdict.SEEN)


def refuse_extra(fact: str, allowed: Collection[str], claimed: Iterable[str]) -> FactResult:
    """Judge that nothing else is claimed."""
    extra = sorted(set(claimed) - set(allowed))
    return FactResult(fact, Verdict.WRONG, f"reported is also {_list_text(extra)}") if extra else seen(fact)


def seen(fact: str) -> FactResult:
    """Return that a fact was reported rightly."""
    return FactResult(fact, Verdict.SEEN)


def missed(fact: str, reason: str) -> FactResult:
    """Return that a fact wasn't reported."""
    return FactResult(fact, Verdict.MISSED, reason)


def wrong(fact: str, reason: str) -> FactResult:
    """Return that something else than the fact was reported."""
    return FactResult(fact, Verdict.WRONG, reason)


def _list_text(words: Iterable[str]) -> str:
    return ", ".join(words) or "nothing"


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
    for finding in findings:
        counts.setdefault(finding.scenario, Counter())[finding.verdict] += 1
    total: Counter[Verdict] = Counter()
    for count in counts.values():
        total.update(count)
    return [_score(name, count) for name, count in (*counts.items(), (TOTAL, total))]


def _score(scenario: str, count: Counter[Verdict]) -> Score:
    return Score(
        scenario, *(count[verdict] for verdict in (Verdict.SEEN, Verdict.MISSED, Verdict.WRONG, Verdict.SILENT))
    )
