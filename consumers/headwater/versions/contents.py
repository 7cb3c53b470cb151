"""Reads from the store what snapshots contain, and what isn't known of that.

What a state contains is what the state before it contains, unless its commit replaced everything, and what its own
commit read. That is computed once for each commit, the oldest first, so that the states of a whole history cost as much
as its newest one. Where a table's commits aren't all known, it may contain more or less than it seems.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from headwater.events.scalars import Format
from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.traversal.context import TraversalContext, is_range, snapshot_ref_of
from headwater.lineage.questions.traversal.snapshot_rows import SnapshotRead, SnapshotWrite
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef
from headwater.lineage.questions.traversal.tombstone_lookup import hidden_text
from headwater.versions.commit_lines import CommitsRead, find_commits_read, is_parent_unknown, parent_of
from headwater.versions.commit_reads import CommitReads, OwnRead, ReadResolver
from headwater.versions.histories import TooNear, VersionHistories
from headwater.versions.model import NOTHING_CONTAINED, Contents, Doubt, TableContents, Version
from headwater.versions.source_states import StateFolder

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


class _Node(NamedTuple):
    """Something whose contents are computed once."""

    write: bytes
    is_state: bool
    """The whole state after the write, or what its own commit read."""


class ContentsReader:
    """Computes the contents of snapshots for one question."""

    def __init__(self, walk: TraversalContext) -> None:
        self._walk = walk
        self._states: dict[bytes, Contents] = {}
        self._reads: dict[bytes, CommitReads] = {}
        self._commits: dict[tuple[bytes, bytes], CommitsRead] = {}
        """By write and read."""
        self.histories: Final = VersionHistories(walk)
        self._resolver: Final = ReadResolver(walk, self.histories)
        self._doubts: Final = DoubtFinder(walk, self.histories)
        self.folder: Final = StateFolder(self.histories)

    def state(self, ref: SnapshotRef) -> TableContents:
        """Return a table at a snapshot that was loaded. `TooNear` if it is known to lack a table that was left out."""
        write = self._writer(ref)
        dataset = self._walk.identities.one(ref.dataset, ref.generation)
        read = self.histories.observed(ref)
        since, form = (None, None) if read is None else (read.first_read, read.format)
        bare = Version(dataset, ref.snapshot, None, ref.generation, ref.branch, None, since, form)
        version = self._resolver.version(bare, ref)
        if dataset in self.histories.left_out:
            contents = NOTHING_CONTAINED
        elif not write:
            contents = Contents(dataset, doubts=self._doubts.of_unknown_writer(ref))
        else:
            contents = self._compute(_Node(write[0].id, is_state=True))
        missing = self.histories.left_out - contents.all.ancestors.keys() - {dataset}
        if missing:
            raise TooNear(missing)
        return TableContents(version, contents)

    def include(self, tables: Collection[bytes]) -> None:
        """Leave out no more what is behind some tables. All versions have to be loaded again."""
        self._states.clear()
        self._reads.clear()
        self._commits.clear()
        self._resolver.forget()
        self.folder.forget()
        self.histories.include(tables)

    def _writer(self, ref: SnapshotRef) -> list[SnapshotWrite]:
        return self.histories.writer(ref)

    def _writes(self, node: _Node) -> list[SnapshotWrite]:
        found = self.histories.write_of(node.write)
        assert found is not None  # noqa: S101 - nodes are of writes that were met
        return found

    def _is_computed(self, node: _Node) -> bool:
        return node.write in (self._states if node.is_state else self._reads)

    def _compute(self, wanted: _Node) -> Contents:
        """Compute a node after all that it depends on. A commit that reads its own result, which can't be, reads
        nothing."""
        waiting, active = [wanted], set[_Node]()
        while waiting:
            node = waiting[-1]
            if not self._is_computed(node) and node not in active:
                active.add(node)
                needed = (other for other in self._needed_by(node) if other not in active)
                waiting += [other for other in needed if not self._is_computed(other)]
                continue
            waiting.pop()
            if not self._is_computed(node):
                if node.is_state:
                    self._states[node.write] = self._state_of(node)
                else:
                    self._reads[node.write] = self._reads_of(node)
                active.remove(node)
        return self._states[wanted.write]

    def _needed_by(self, node: _Node) -> Iterator[_Node]:
        write = self._writes(node)
        if node.is_state:
            yield _Node(node.write, is_state=False)
            before = None if write[0].restarts else parent_of(write)
            if before is not None and (parent := self._writer(before)):
                yield _Node(parent[0].id, is_state=True)
            return
        for commit in write:
            for read in self.histories.reads_of(commit.id):
                if not self.histories.is_read_left_out(read):
                    commits = self._commits_read(commit, read).commits
                    yield from (_Node(one.id, is_state=not is_range(read)) for one in commits)

    def _commits_read(self, write: SnapshotWrite, read: SnapshotRead) -> CommitsRead:
        """Return the commits whose contents a read brings; they are asked for before they are computed, and then."""
        key = (write.id, read.id)
        known = self._commits.get(key)
        if known is None:
            known = self._commits[key] = find_commits_read(write, read, self._writer)
        return known

    def _state_of(self, node: _Node) -> Contents:
        write = self._writes(node)
        own = self._reads.get(node.write)
        if own is None:
            return NOTHING_CONTAINED
        first = write[0]
        base, doubts = NOTHING_CONTAINED, frozenset[Doubt]()
        if not first.restarts:
            before = parent_of(write)
            if before is None:
                doubts = self._doubts.of_missing_parent(first)
            elif parent := self._writer(before):
                base = self._states.get(parent[0].id, NOTHING_CONTAINED)
            else:
                doubts = self._doubts.of_unknown_writer(before)
        return self.folder.apply(base, own, doubts)

    def _reads_of(self, node: _Node) -> CommitReads:
        """Return what one commit read, with what is contained in that."""
        writes = self._writes(node)
        first = writes[0]
        reads, doubts = list[OwnRead](), frozenset[Doubt]()
        for write in writes:
            doubts |= self._doubts.of_commit(write)
            for read in self.histories.reads_of(write.id):
                if read.dataset is not None:
                    reads.append(self._read_of(write, read))
        return CommitReads(first, self._resolver.identity(first), tuple(reads), doubts)

    def _read_of(self, write: SnapshotWrite, read: SnapshotRead) -> OwnRead:
        """Return a read. A state whose writer is unknown, or a commit within changes whose writer or parent is, is a
        doubt; behind tables that are left out it is seen of the version alone that was read."""
        source, doubts = self._resolver.source(read), frozenset[Doubt]()
        commits, behind = list[CommitReads](), NOTHING_CONTAINED
        if self.histories.is_read_left_out(read):
            unknown = self._unknown_version(snapshot_ref_of(read, write.at))
        else:
            found = self._commits_read(write, read)
            unknown = found.unknown
            if found.has_unknown_parent:
                doubts = self._doubts.of_missing_parent(found.commits[-1], read.since)
            if is_range(read):
                commits = [self._reads[commit.id] for commit in reversed(found.commits) if commit.id in self._reads]
            elif found.commits:
                behind = self._states.get(found.commits[0].id, NOTHING_CONTAINED)
        if unknown is not None:
            doubts = self._doubts.of_unknown_writer(unknown)
        elif read.snapshot is None:
            doubts = self._doubts.of_read_without_snapshot(read)
        return self._resolver.resolve(write, read, Contents(source, doubts=doubts) if doubts else behind, commits)

    def _unknown_version(self, ref: SnapshotRef | None) -> SnapshotRef | None:
        """Return a version, or the one before it that has the same rows, if its writer is unknown."""
        while ref is not None and (write := self._writer(ref)):
            ref = self.histories.before(write)
        return ref
