"""What was made from snapshots, level by level."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from headwater.lineage.law.commits import SOME
from headwater.lineage.questions.answers import Why
from headwater.lineage.questions.walking.descent import Descent
from headwater.lineage.questions.walking.facts import (
    ICEBERG,
    Made,
    Taken,
    edges_of,
    made_in,
    ranges_over,
    taken_at,
)
from headwater.lineage.questions.walking.makers import Wanted, subject
from headwater.lineage.questions.walking.upward import label
from headwater.lineage.questions.walking.walk import Basis, Step, Walk, is_range, wanted_of

Pair = tuple[bytes, int]


class Aim:
    """A snapshot whose readers are looked for, and the states that it is a part of."""

    def __init__(self, wanted: Wanted, made: Sequence[Made], states: Iterable[Made] = ()) -> None:
        self.wanted = wanted
        self.ids = {each.id for each in made}
        self.states = {each.id for each in states}
        self.numbers = {wanted.snapshot}
        self.state_numbers = {each.snapshot for each in states if each.snapshot is not None}


class Downward:
    def __init__(self, walk: Walk, basis: Basis) -> None:
        self._walk = walk
        self._basis = basis
        self._descent = Descent(walk.makers)
        self._done: set[bytes] = set()

    def levels(self, start: Collection[tuple[Wanted, Sequence[Made]]], depth: int | None) -> Iterator[list[Step]]:
        """Each of `start` is a snapshot with its makers, as far as they are known."""
        level, asked = 1, list(start)
        self._done.update(each.id for _, made in asked for each in made)
        while asked:
            steps = list(self._made_from(self._aims(asked), level))
            yield steps
            if depth is not None and level >= depth:
                return
            new = {step.made.id: step.made for step in steps if step.made.id not in self._done}
            self._done.update(new)
            asked = [(wanted, [made]) for made in new.values() if (wanted := _as_wanted(made)) is not None]
            level += 1

    def _aims(self, asked: Sequence[tuple[Wanted, Sequence[Made]]]) -> list[Aim]:
        if self._basis is Basis.COMMIT:
            return [Aim(wanted, made) for wanted, made in asked]
        parts = self._descent.walk([each for _, made in asked for each in made])
        return [Aim(wanted, made, [s for each in made for s in parts[each.id]]) for wanted, made in asked]

    def _made_from(self, aims: Sequence[Aim], level: int) -> Iterator[Step]:
        readers = self._readers(aims)
        written: dict[bytes, list[Made]] = {}
        for made in made_in(self._walk.connection, {(each.commit_id, each.barrier) for each in readers}):
            if made.commit_id is not None:
                written.setdefault(made.commit_id, []).append(made)
        told = edges_of(self._walk.connection, [m for each in written.values() for m in each if m.made_from == SOME])
        pairs = [(made, taken) for taken in readers for made in written.get(taken.commit_id, ())]
        for made, taken in self._visible([(m, taken) for m, taken in pairs if self._is_from(m, taken, told)]):
            if self._walk.as_of is None or made.at <= self._walk.as_of:
                yield Step(level, made, taken)

    def _readers(self, aims: Sequence[Aim]) -> list[Taken]:
        """Those that read one of these, and not another that has its number."""
        groups: dict[Pair, list[Aim]] = {}
        for aim in aims:
            for dataset in self._walk.identities.group(aim.wanted.dataset):
                for number in aim.numbers | aim.state_numbers:
                    groups.setdefault((dataset, number), []).append(aim)
        found = {each.id: each for each in taken_at(self._walk.connection, groups)}
        over = {(dataset, number) for (dataset, number), of in groups.items() if any(number in a.numbers for a in of)}
        found |= {each.id: each for each in ranges_over(self._walk.connection, over)}
        self._walk.makers.load(wanted for each in found.values() if (wanted := wanted_of(each, _at(each))) is not None)
        by_dataset: dict[bytes, list[Aim]] = {}
        for (dataset, _), of in groups.items():
            known = by_dataset.setdefault(dataset, [])
            known += [aim for aim in of if aim not in known]
        return [each for each in found.values() if self._is_meant(each, groups, by_dataset)]

    def _is_meant(self, taken: Taken, groups: Mapping[Pair, list[Aim]], by_dataset: Mapping[bytes, list[Aim]]) -> bool:
        if taken.dataset is None or taken.snapshot is None:
            return False
        exact = groups.get((taken.dataset, taken.snapshot), ())
        if any(self._is_one(taken, aim) for aim in exact):
            return True
        return is_range(taken) and any(self._is_over(taken, aim) for aim in by_dataset.get(taken.dataset, ()))

    def _is_one(self, taken: Taken, aim: Aim) -> bool:
        """Read at this number, of this life and branch; of changes, that they end with it."""
        wanted = wanted_of(taken, _at(taken))
        if wanted is None:
            return False
        makers = {each.id for each in self._walk.makers.of(wanted)}
        if not aim.ids or not makers:
            same = (
                taken.life in {None, aim.wanted.life} or aim.wanted.life is None
            ) and taken.branch == aim.wanted.branch
            return same and taken.snapshot == aim.wanted.snapshot
        if makers & aim.ids:
            return True
        return bool(makers & aim.states) and not is_range(taken)

    def _is_over(self, taken: Taken, aim: Aim) -> bool:
        """The changes between two snapshots, this one among them."""
        number, since, until = aim.wanted.snapshot, taken.since, taken.snapshot
        if since is None or until is None or taken.branch != aim.wanted.branch:
            return False
        if taken.life is not None and aim.wanted.life is not None and taken.life != aim.wanted.life:
            return False
        if taken.format == ICEBERG:
            return self._is_between(taken, aim)
        return since < number <= until or (number == since and taken.since_version is not None)

    def _is_between(self, taken: Taken, aim: Aim) -> bool:
        """Numbers that say nothing of their order: by what was made on what."""
        ids = aim.ids
        makers = [each for each in self._makers_known(aim) if each.id in ids]
        after = {each.snapshot for states in self._descent.walk(makers).values() for each in states}
        if taken.since == aim.wanted.snapshot:
            return taken.since_version is not None
        return taken.snapshot in after and taken.since not in after

    def _makers_known(self, aim: Aim) -> list[Made]:
        return self._walk.makers.of(aim.wanted)

    def _is_from(self, made: Made, taken: Taken, told: Mapping[bytes, set[bytes]]) -> bool:
        if made.made_from == SOME:
            return taken.id in told.get(made.id, ())
        if made.made_from == "UNKNOWN":
            if made.dataset is not None:
                detail = f"its commit read {label(taken)}, and whether it is in it isn't known"
                self._walk.limits.add_snapshot(Why.UNKNOWN_SOURCES, made.dataset, made.snapshot, detail)
            return False
        return True

    def _visible(self, pairs: Sequence[tuple[Made, Taken]]) -> Iterator[tuple[Made, Taken]]:
        of_reads = self._walk.hiding.hidden([subject(taken, made) for made, taken in pairs])
        of_writes = self._walk.hiding.hidden([subject(made, made) for made, _ in pairs])
        for pair, *hidden in zip(pairs, of_reads, of_writes, strict=True):
            if not any(hidden):
                yield pair
            elif pair[0].dataset is not None:
                detail = "lineage of what was made from it was deleted"
                about = pair[1].dataset or pair[0].dataset
                self._walk.limits.add_snapshot(Why.DELETED, about, pair[1].snapshot, detail)


def _as_wanted(made: Made) -> Wanted | None:
    if made.dataset is None or made.snapshot is None:
        return None
    return Wanted(made.dataset, made.snapshot, made.life, made.branch, made.at)


def _at(taken: Taken) -> int:
    """Facts of a commit are told at one time."""
    return taken.last
