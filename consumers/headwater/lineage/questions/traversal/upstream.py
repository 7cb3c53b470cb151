"""Finds what snapshots were made from, level by level."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.traversal.ancestry import Ancestry, AncestryRequest
from headwater.lineage.questions.traversal.context import (
    Basis,
    LineageStep,
    TraversalContext,
    is_range,
    snapshot_ref_of,
)
from headwater.lineage.questions.traversal.reconciled import RECONCILED, UNREPORTED
from headwater.lineage.questions.traversal.snapshot_rows import SnapshotRead, SnapshotWrite, load_sources
from headwater.lineage.questions.traversal.snapshot_writers import deletion_subject_of
from headwater.lineage.questions.traversal.tombstone_lookup import hidden_text

_UNSEEN = "something was read that Spark doesn't show"


class UpstreamWalk:
    """Walks upstream. It visits each write once, so it always ends."""

    def __init__(
        self,
        walk: TraversalContext,
        basis: Basis,
        most_commits: int | None = None,
        *,
        ends_at: Collection[bytes] = frozenset(),
    ) -> None:
        """`ends_at` are tables behind which it doesn't go on."""
        self._walk = walk
        self._ends_at = ends_at
        self._basis = basis
        self._ancestry = Ancestry(walk.makers, walk.limits, most_commits)
        self._done: set[bytes] = set()
        self.unversioned: dict[bytes, None] = {}
        """What was read that has no versions, so that the walk couldn't go on behind it."""
        self.hidden_reads: dict[bytes, set[LimitReason]] = {}
        """The writes that were made from something that isn't shown, and why it isn't."""

    def levels(
        self, start: Collection[SnapshotWrite], reaches: Collection[AncestryRequest], depth: int | None
    ) -> Iterator[list[LineageStep]]:
        """Yield the steps of each level. `start` are known writes, `reaches` writes that have to be found."""
        level, writes = 1, [*start, *self._ancestry.walk(reaches)]
        while writes:
            steps = self._steps(writes, level)
            yield steps
            if depth is not None and level >= depth:
                return
            further = [reach for step in steps if (reach := self._reach(step)) is not None]
            if self._basis is Basis.COMMIT and level > 1:
                self._walk.makers.prepare((step.ref for step in further), None if depth is None else depth - level)
            writes = self._ancestry.walk(further)
            level += 1

    def _steps(self, writes: Sequence[SnapshotWrite], level: int) -> list[LineageStep]:
        new = [write for write in writes if write.id not in self._done]
        self._done.update(write.id for write in new)
        for write in new:
            if write.hidden and write.dataset is not None:
                self._walk.limits.add_snapshot(write.hidden, write.dataset, write.snapshot, hidden_text(write.hidden))
        shown = [write for write in new if not write.hidden and write.commit_id is not None]
        sources = load_sources(self._walk.connection, shown, self._walk.makers.ahead.reads)
        pairs = [
            (write, read) for write in shown if self._is_known(write, sources[write.id]) for read in sources[write.id]
        ]
        return [LineageStep(level, write, read) for write, read in self._visible(pairs)]

    def _is_known(self, write: SnapshotWrite, sources: Sequence[SnapshotRead]) -> bool:
        """Return whether the sources of a write are known. What was only read beside it becomes a limit."""
        dataset = write.dataset
        if write.made_from == "UNKNOWN":
            names = ", ".join(sorted({called(source) for source in sources}))
            detail = (
                f"its commit read {names}, and which of it is in it isn't known" if names else "nothing is known of it"
            )
            if write.evidence == RECONCILED:
                detail = UNREPORTED
            if dataset is not None:
                self._walk.limits.add_snapshot(LimitReason.UNKNOWN_SOURCES, dataset, write.snapshot, detail)
            return False
        if write.kind == "CHERRY_PICK" and not sources and dataset is not None:
            self._walk.limits.add_snapshot(
                LimitReason.UNKNOWN_SOURCES, dataset, write.snapshot, "it is unknown what was picked"
            )
        return True

    def _visible(
        self, pairs: Sequence[tuple[SnapshotWrite, SnapshotRead]]
    ) -> Iterator[tuple[SnapshotWrite, SnapshotRead]]:
        hiding = self._walk.hiding
        nothing: list[LimitReason | None] = [None] * len(pairs)
        subjects = [] if hiding.hides_nothing else [deletion_subject_of(read, write) for write, read in pairs]
        for (write, read), why in zip(pairs, hiding.are_hidden(subjects) or nothing, strict=True):
            if why and read.dataset is not None:
                self.hidden_reads.setdefault(write.id, set()).add(why)
                self._walk.limits.add_snapshot(why, read.dataset, read.snapshot, hidden_text(why))
            elif not why:
                self._note(write, read)
                yield write, read

    def _note(self, write: SnapshotWrite, read: SnapshotRead) -> None:
        limits = self._walk.limits
        if read.opaque is not None:
            limits.add(LimitReason.OPAQUE, called(write), f"{_UNSEEN}: {read.opaque}")
        elif read.dataset is not None and read.snapshot is None and read.candidates is not None:
            detail = f"which snapshot was read isn't known; it is one of {read.candidates.strip('[]')}"
            limits.add_snapshot(LimitReason.UNKNOWN_SNAPSHOT, read.dataset, None, detail)

    def _reach(self, step: LineageStep) -> AncestryRequest | None:
        read, ref = step.read, snapshot_ref_of(step.read, step.write.at)
        if ref is None:
            if read.dataset is not None and read.candidates is None:
                self.unversioned[read.dataset] = None
            return None
        if self._ends_at and self._walk.identities.one(ref.dataset, ref.generation) in self._ends_at:
            return None
        if is_range(read):
            if read.since is None:
                detail = "it is unknown where the changes began: only the last one is followed"
                self._walk.limits.add_snapshot(LimitReason.UNKNOWN_SNAPSHOT, ref.dataset, ref.snapshot, detail)
                return AncestryRequest(ref, ref.snapshot, inclusive=True, is_state=False)
            return AncestryRequest(ref, read.since, inclusive=read.since_version is not None, is_state=False)
        if self._basis is Basis.STATE:
            return AncestryRequest(ref)
        return AncestryRequest(ref, ref.snapshot, inclusive=True, is_state=False)


def called(access: SnapshotRead | SnapshotWrite) -> str:
    """Return what was read or written, by the name in the commit."""
    name = ".".join(filter(None, access.name)) or access.opaque or "something without a name"
    return name if access.snapshot is None else f"{name}@{access.snapshot}"
