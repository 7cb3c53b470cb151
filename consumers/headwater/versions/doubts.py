"""What isn't known of a table's commits, so that it may contain more or less than it seems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headwater.events.scalars import Format
from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.traversal.context import TraversalContext, is_range
from headwater.lineage.questions.traversal.snapshot_rows import SnapshotRead, SnapshotWrite
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef
from headwater.lineage.questions.traversal.tombstone_lookup import hidden_text
from headwater.versions.commit_lines import is_parent_unknown
from headwater.versions.histories import VersionHistories
from headwater.versions.model import Doubt

_UNSURE_KINDS: Final = frozenset({"OVERWRITE", "REPLACE", "OTHER", "UNKNOWN"})
_UNKNOWN_BEGINNING: Final = (
    "it is unknown where the changes began that it was made from: begin the stream anew{options}, with a new "
    "checkpoint and a table that it overwrites"
)
_FIRST_OPTIONS: Final = {
    Format.HUDI.value: " without hoodie.datasource.streaming.startOffset and "
    "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
}
"""Without which a stream of a format tells where it begins, where its option can't be told in general."""
_CHERRY_PICK: Final = "CHERRY_PICK"


class DoubtFinder:
    """Finds what isn't known of commits, for one question."""

    def __init__(self, walk: TraversalContext, histories: VersionHistories) -> None:
        self._walk = walk
        self._histories = histories

    def of_unknown_writer(self, ref: SnapshotRef) -> frozenset[Doubt]:
        """A snapshot without a known writer is a doubt, unless nothing is known of any writer of that table: then it is
        where lineage begins."""
        if not self._histories.is_written(ref.dataset):
            return frozenset()
        dataset = self._walk.identities.one(ref.dataset, ref.generation)
        return frozenset({Doubt(dataset, LimitReason.UNKNOWN_WRITER, ref.snapshot, "its writer is unknown")})

    def of_read_without_snapshot(self, read: SnapshotRead) -> frozenset[Doubt]:
        """Return a doubt about what was made from a table without snapshots, or a topic, that some job is known to
        write: by which commits its rows came isn't known."""
        if read.dataset is None or not self._histories.is_written(read.dataset):
            return frozenset()
        dataset = self._walk.identities.one(read.dataset, read.generation)
        detail = "it was read without a snapshot, and jobs write it: which of their commits were read isn't known"
        return frozenset({Doubt(dataset, LimitReason.UNKNOWN_SNAPSHOT, None, detail)})

    def of_missing_parent(self, write: SnapshotWrite, since: int | None = None) -> frozenset[Doubt]:
        """A commit without a parent is a doubt, unless it is the first one of its table. That it isn't, if changes that
        it is within begin after another one."""
        is_later = since is not None and since > 0
        if not is_later and not is_parent_unknown(self._walk.connection, self._walk.identities, write):
            return frozenset()
        return frozenset({self._doubt(write, LimitReason.UNKNOWN_WRITER, "its parent is unknown")})

    def of_commit(self, write: SnapshotWrite) -> frozenset[Doubt]:
        """Return what isn't known of one commit itself."""
        if write.hidden:
            return frozenset({self._doubt(write, write.hidden, hidden_text(write.hidden))})
        if write.made_from == "UNKNOWN":
            detail = "it is unknown which of its commit's inputs it was made from"
            return frozenset({self._doubt(write, LimitReason.UNKNOWN_SOURCES, detail)})
        reads = self._histories.reads_of(write.id)
        found = {doubt for read in reads for doubt in self._of_read(write, read)}
        for why in self._histories.hidden_reads_of(write.id):
            found.add(self._doubt(write, why, hidden_text(why, "lineage of what it was made from")))
        if write.kind == _CHERRY_PICK and not reads:
            found.add(self._doubt(write, LimitReason.UNKNOWN_SOURCES, "it is unknown what was picked"))
        if write.replaced == "UNKNOWN" and write.kind in _UNSURE_KINDS:
            detail = "it is unknown whether it replaced the whole table"
            found.add(self._doubt(write, LimitReason.UNKNOWN_EFFECT, detail))
        return frozenset(found)

    def _of_read(self, write: SnapshotWrite, read: SnapshotRead) -> Iterator[Doubt]:
        if read.dataset is None:
            if read.opaque is not None:
                detail = f"something was read that Spark doesn't show: {read.opaque}"
                yield self._doubt(write, LimitReason.OPAQUE, detail)
            return
        if is_range(read) and read.since is None and read.snapshot is not None:
            detail = _UNKNOWN_BEGINNING.format(options=_FIRST_OPTIONS.get(read.format or "", ""))
            yield self._doubt(write, LimitReason.UNKNOWN_SNAPSHOT, detail)
        if read.snapshot is None and read.candidates is not None:
            detail = f"which snapshot was read isn't known; it is one of {read.candidates.strip('[]')}"
            yield self._doubt(write, LimitReason.UNKNOWN_SNAPSHOT, detail)

    def _doubt(self, write: SnapshotWrite, reason: LimitReason, detail: str) -> Doubt:
        assert write.dataset is not None  # noqa: S101 - it was found by its dataset
        return Doubt(self._walk.identities.one(write.dataset, write.generation), reason, write.snapshot, detail)
