"""All commits of a state, or of a range of changes: from a snapshot to the one that it was made on, and so on.

The first steps are one statement each for all snapshots that are asked for; the history of tables with more of it is
read in portions, the newest first.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from headwater.lineage.questions.answers import Why
from headwater.lineage.questions.walking.facts import ICEBERG, Made, made_before
from headwater.lineage.questions.walking.limits import Limits
from headwater.lineage.questions.walking.makers import Makers, Wanted

_STEPS: Final = 4
"""Single steps before portions."""
_PORTION: Final = 512
_GREATEST: Final = 8_192


@dataclass
class Reach:
    """A snapshot, and how far back from it."""

    wanted: Wanted
    since: int | None = None
    """Changes behind this one; of the state all, as far as nothing took their place."""
    inclusive: bool = False
    """A part of `since` itself is among them."""
    is_state: bool = True
    found: list[Made] = field(default_factory=list)
    at: Wanted | None = None
    """Where the walk is; none where it has ended."""

    def __post_init__(self) -> None:
        self.at = self.wanted


class Ancestry:
    """For one question."""

    def __init__(self, makers: Makers, limits: Limits) -> None:
        self._makers = makers
        self._limits = limits
        self._portions: dict[bytes, int] = {}
        self._read_to: dict[bytes, int] = {}
        self._of_states: set[bytes] = set()

    def walk(self, reaches: Collection[Reach]) -> list[Made]:
        """All commits of these, each once. A state that was walked before isn't walked again."""
        waiting = [each for each in reaches if each.at is not None]
        steps = 0
        while waiting:
            asked = [each.at for each in waiting if each.at is not None]
            missing = [each for each in asked if self._makers.near(each) is None]
            if missing and steps >= _STEPS:
                self._read_on(missing)
                missing = [each for each in missing if self._makers.near(each) is None]
            self._makers.load(missing)
            waiting = [each for each in waiting if self._step(each)]
            steps += 1
        return list({made.id: made for each in reaches for made in each.found}.values())

    def _step(self, reach: Reach) -> bool:
        """Whether the walk goes on."""
        assert reach.at is not None  # noqa: S101 - those that have ended aren't waiting
        at = reach.at
        made = self._makers.near(at) or self._makers.of(at)
        if not made:
            self._limits.add_snapshot(Why.UNKNOWN_WRITER, at.dataset, at.snapshot, "nobody is known to have made it")
            return False
        if reach.is_state:
            if made[0].id in self._of_states:
                return False
            self._of_states.update(each.id for each in made)
        reach.found += made
        return self._goes_on(reach, made)

    def _goes_on(self, reach: Reach, made: list[Made]) -> bool:
        first = made[0]
        if reach.is_state and first.restarts:
            return False
        parent = next((each.parent for each in made if each.parent is not None), None)
        if parent is None:
            self._is_beginning(reach, first)
            return False
        if not reach.is_state and _is_before(reach, parent, first):
            return False
        self._note(first)
        assert first.dataset is not None  # noqa: S101 - it was found by its dataset
        reach.at = Wanted(first.dataset, parent, first.life, first.branch, first.at, first.format == ICEBERG)
        return True

    def _is_beginning(self, reach: Reach, made: Made) -> None:
        """Only a first snapshot is made on nothing."""
        numbered = made.format not in {ICEBERG, None}
        if numbered and made.snapshot is not None and made.snapshot > 1 and reach.is_state:
            detail = "what it was made on isn't told"
            self._limits.add_snapshot(Why.UNKNOWN_WRITER, reach.wanted.dataset, made.snapshot, detail)

    def _note(self, made: Made) -> None:
        if made.replaced == "UNKNOWN" and made.kind in {"OVERWRITE", "REPLACE", "OTHER", "UNKNOWN"} and made.dataset:
            detail = "whether it took the place of all that was there isn't known; what was there before is told too"
            self._limits.add_snapshot(Why.UNKNOWN_EFFECT, made.dataset, made.snapshot, detail)

    def _read_on(self, missing: Collection[Wanted]) -> None:
        for dataset, at in sorted({each.dataset: each.at for each in missing}.items()):
            size = self._portions.get(dataset, _PORTION)
            self._portions[dataset] = min(size * 2, _GREATEST)
            group = self._makers.identities.group(dataset)
            start = min(at, self._read_to.get(dataset, at))
            found = self._makers.keep(made_before(self._makers.connection, list(group), start, size))
            if found:
                self._read_to[dataset] = min(each.at for each in found)


def _is_before(reach: Reach, parent: int, made: Made) -> bool:
    """Whether the parent is behind what was read; numbers tell it too, where they are given one after the other."""
    if made.snapshot == reach.since or (parent == reach.since and not reach.inclusive):
        return True
    return reach.since is not None and made.format != ICEBERG and parent < reach.since
