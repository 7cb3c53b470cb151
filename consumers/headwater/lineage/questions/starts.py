"""Where a question about a snapshot begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from headwater.lineage.questions.answers import Why
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.walking.facts import Made, made_before, unversioned_before
from headwater.lineage.questions.walking.identities import FOREVER
from headwater.lineage.questions.walking.makers import Wanted
from headwater.lineage.questions.walking.walk import Basis, Walk

_NEWEST: Final = 64
_NO_DATA: Final = frozenset({"COMPACT", "ANALYZE", "VACUUM", "ALTER"})


@dataclass
class Start:
    """A snapshot that is asked about, and who made it as far as that is known."""

    dataset: Dataset
    wanted: Wanted | None
    """None where the dataset has no snapshots, or none is known."""
    made: list[Made]
    note: str = ""

    def label(self, names: Mapping[bytes, Dataset]) -> str:
        name = names.get(self.dataset.key, self.dataset).label
        if self.wanted is None:
            return name
        branch = f"[{self.wanted.branch}]" if self.wanted.branch else ""
        return f"{name}{branch}@{self.wanted.snapshot}"


class Which(NamedTuple):
    """Without a snapshot the newest is meant, without a life the newest that has the snapshot."""

    snapshot: int | None = None
    life: str | None = None
    branch: str | None = None


def start_of(walk: Walk, dataset: Dataset, which: Which, basis: Basis) -> Start:
    snapshot, life, branch = which
    at = FOREVER if walk.as_of is None else walk.as_of
    if snapshot is None:
        return _newest(walk, dataset, which, at, basis)
    wanted = Wanted(dataset.key, snapshot, life, branch, at)
    walk.makers.load([wanted])
    made = walk.makers.of(wanted) or ([] if branch else walk.makers.of(wanted._replace(any_branch=True)))
    lives = walk.makers.lives(wanted)
    if life is None and made and len(lives) > 1:
        detail = f"the table was made anew, and had this number in {len(lives)} lives: this is of life {made[0].life}"
        walk.limits.add_snapshot(Why.UNKNOWN_SNAPSHOT, dataset.key, snapshot, detail)
    if not made:
        walk.limits.add_snapshot(Why.UNKNOWN_WRITER, dataset.key, snapshot, "nobody is known to have made it")
        return Start(dataset, wanted, [])
    wanted = wanted._replace(life=made[0].life if life is None else life, branch=made[0].branch)
    return Start(dataset, wanted, made, _note(made[0], basis))


def _newest(walk: Walk, dataset: Dataset, which: Which, at: int, basis: Basis) -> Start:
    group = list(walk.identities.group(dataset.key))
    there = walk.makers.keep(made_before(walk.connection, group, at, _NEWEST))
    fitting = [
        each
        for each in there
        if each.snapshot is not None
        and not each.hidden
        and each.branch == which.branch
        and (which.life is None or each.life == which.life)
    ]
    if fitting:
        newest = max(fitting, key=lambda each: (each.at, each.snapshot))
        assert newest.snapshot is not None  # noqa: S101 - it was chosen for it
        wanted = Wanted(dataset.key, newest.snapshot, newest.life, newest.branch, at)
        walk.makers.load([wanted])
        made = walk.makers.of(wanted)
        return Start(dataset, wanted, made, _note(made[0] if made else newest, basis))
    return _without_versions(walk, dataset, group, at, basis)


def _without_versions(walk: Walk, dataset: Dataset, group: list[bytes], at: int, basis: Basis) -> Start:
    """By time: the newest commit, or all since the last that replaced everything."""
    found: list[Made] = []
    for each in unversioned_before(walk.connection, group, at):
        found.append(each)
        if basis is Basis.COMMIT or each.restarts:
            break
    return Start(dataset, None, walk.makers.keep(found), "the table has no versions: its newest commits are told")


def _note(made: Made, basis: Basis) -> str:
    if basis is Basis.COMMIT and made.kind in _NO_DATA:
        return f"its commit was a {made.kind}, which changes no rows: ask for the state to see what they were made from"
    return ""
