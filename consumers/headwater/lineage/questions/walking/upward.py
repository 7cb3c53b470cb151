"""What snapshots were made from, level by level."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from headwater.lineage.questions.answers import Why
from headwater.lineage.questions.walking.ancestry import Ancestry, Reach
from headwater.lineage.questions.walking.facts import Made, Taken, sources_of
from headwater.lineage.questions.walking.makers import subject
from headwater.lineage.questions.walking.walk import Basis, Step, Walk, is_range, wanted_of

_UNSEEN = "something was read that Spark doesn't show"


class Upward:
    """Each write is looked at once, so that a walk ends whatever was told."""

    def __init__(self, walk: Walk, basis: Basis) -> None:
        self._walk = walk
        self._basis = basis
        self._ancestry = Ancestry(walk.makers, walk.limits)
        self._done: set[bytes] = set()
        self.unversioned: dict[bytes, None] = {}
        """What was read that has no versions, so that the walk couldn't go on behind it."""

    def levels(self, start: Collection[Made], reaches: Collection[Reach], depth: int | None) -> Iterator[list[Step]]:
        """`start` are writes that are known already, `reaches` those to be found."""
        level, made = 1, [*start, *self._ancestry.walk(reaches)]
        while made:
            steps = self._steps(made, level)
            yield steps
            if depth is not None and level >= depth:
                return
            made = self._ancestry.walk([reach for step in steps if (reach := self._reach(step)) is not None])
            level += 1

    def _steps(self, made: Sequence[Made], level: int) -> list[Step]:
        new = [each for each in made if each.id not in self._done]
        self._done.update(each.id for each in new)
        for each in new:
            if each.hidden and each.dataset is not None:
                self._walk.limits.add_snapshot(Why.DELETED, each.dataset, each.snapshot, "its lineage was deleted")
        shown = [each for each in new if not each.hidden and each.commit_id is not None]
        sources = sources_of(self._walk.connection, shown)
        pairs = [
            (each, taken) for each in shown if self._is_known(each, sources[each.id]) for taken in sources[each.id]
        ]
        return [Step(level, each, taken) for each, taken in self._visible(pairs)]

    def _is_known(self, made: Made, sources: Sequence[Taken]) -> bool:
        """Whether it is known what it was made from; what was only read beside it is told as a limit."""
        dataset = made.dataset
        if made.made_from == "UNKNOWN":
            read = ", ".join(sorted({label(each) for each in sources}))
            detail = (
                f"its commit read {read}, and which of it is in it isn't known" if read else "nothing is told of it"
            )
            if dataset is not None:
                self._walk.limits.add_snapshot(Why.UNKNOWN_SOURCES, dataset, made.snapshot, detail)
            return False
        if made.kind == "CHERRY_PICK" and not sources and dataset is not None:
            self._walk.limits.add_snapshot(Why.UNKNOWN_SOURCES, dataset, made.snapshot, "what was picked isn't told")
        return True

    def _visible(self, pairs: Sequence[tuple[Made, Taken]]) -> Iterator[tuple[Made, Taken]]:
        nothing = self._walk.hiding.hides_nothing
        hidden = [] if nothing else self._walk.hiding.hidden([subject(taken, made) for made, taken in pairs])
        hidden = hidden or [False] * len(pairs)
        for (made, taken), is_hidden in zip(pairs, hidden, strict=True):
            if is_hidden and taken.dataset is not None:
                self._walk.limits.add_snapshot(Why.DELETED, taken.dataset, taken.snapshot, "its lineage was deleted")
            elif not is_hidden:
                self._note(made, taken)
                yield made, taken

    def _note(self, made: Made, taken: Taken) -> None:
        limits = self._walk.limits
        if taken.opaque is not None:
            limits.add(Why.OPAQUE, place_of(made), f"{_UNSEEN}: {taken.opaque}")
        elif taken.dataset is not None and taken.snapshot is None and taken.candidates is not None:
            detail = f"which snapshot was read isn't known; it is one of {taken.candidates.strip('[]')}"
            limits.add_snapshot(Why.UNKNOWN_SNAPSHOT, taken.dataset, None, detail)

    def _reach(self, step: Step) -> Reach | None:
        taken, wanted = step.taken, wanted_of(step.taken, step.made.at)
        if wanted is None:
            if taken.dataset is not None and taken.candidates is None:
                self.unversioned[taken.dataset] = None
            return None
        if is_range(taken):
            if taken.since is None:
                detail = "where the changes that were read began isn't told: only the last of them is followed"
                self._walk.limits.add_snapshot(Why.UNKNOWN_SNAPSHOT, wanted.dataset, wanted.snapshot, detail)
                return Reach(wanted, wanted.snapshot, inclusive=True, is_state=False)
            return Reach(wanted, taken.since, inclusive=taken.since_version is not None, is_state=False)
        if self._basis is Basis.STATE:
            return Reach(wanted)
        return Reach(wanted, wanted.snapshot, inclusive=True, is_state=False)


def label(taken: Taken) -> str:
    """What was read, by the name that it was read by."""
    name = ".".join(filter(None, taken.name)) or taken.opaque or "something without a name"
    return name if taken.snapshot is None else f"{name}@{taken.snapshot}"


def place_of(made: Made) -> str:
    name = ".".join(filter(None, made.name)) or made.opaque or "something without a name"
    return name if made.snapshot is None else f"{name}@{made.snapshot}"
