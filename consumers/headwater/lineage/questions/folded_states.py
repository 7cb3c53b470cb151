"""Folds a long state in the database: lines of numbered snapshots as spans, and what their commits read added up.

It answers what `states` answers by walking each commit, or nothing if any part of the history isn't that regular.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from headwater.events.clock import moment_of
from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.lineage_answers import StateEdge, VersionRange
from headwater.lineage.questions.snapshots import SnapshotQuestion, format_job_key
from headwater.lineage.questions.traversal.context import LineageStep
from headwater.lineage.questions.traversal.history_lines import (
    CommitSpan,
    HistoryLine,
    IrregularHistory,
    SnapshotSpan,
    commits_of,
    ends_of,
    has_writes,
    runs_with_gaps,
    sources_alone,
    sources_by_job,
    spans_read,
    state_span,
)
from headwater.lineage.questions.traversal.identities import ALWAYS
from headwater.lineage.questions.traversal.snapshot_rows import CHANGES, is_unordered, load_sources
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef

_MOST_LEVELS: Final = 20
_Wanted = tuple[SnapshotSpan, bool]
"""Snapshots, and whether all commits of their states are meant."""


@dataclass
class _Sources:
    """What the commits of one line read of another."""

    depth: int
    rows: list[Any] = field(default_factory=list)


class StateFold:
    """Folds the state that one question is about. After `IrregularHistory` it has to be walked."""

    def __init__(self, question: SnapshotQuestion) -> None:
        self._question = question
        self._connection = question.walk.connection
        self._parts: dict[HistoryLine, list[CommitSpan]] = {}
        self._found: dict[tuple[HistoryLine, HistoryLine], _Sources] = {}
        self._unknown: list[tuple[bytes, int]] = []
        self.runs: set[bytes] = set()
        """Of these commits, those of which a gap is known that is about no table."""
        self.unversioned: set[bytes] = set()

    @property
    def datasets(self) -> set[bytes]:
        return {line.dataset for pair in self._found for line in pair}

    def walk(self, depth: int | None, at_most: int) -> None:
        """Walk all lines that are a part of the state."""
        start = self._question.start.snapshot
        if start is None or not self._question.walk.hiding.hides_nothing:
            raise IrregularHistory
        line, level = HistoryLine(start.dataset, start.generation, start.branch), 1
        wanted = {line: [(SnapshotSpan(start.snapshot, start.snapshot), True)]}
        while wanted and (depth is None or level <= depth):
            if level > _MOST_LEVELS:
                raise IrregularHistory
            following: dict[HistoryLine, list[_Wanted]] = {}
            for line, spans in wanted.items():
                for commits, row in self._walk_line(line, spans, level):
                    if depth is None or level < depth:
                        source = _line_of(row)
                        following.setdefault(source, []).extend(self._next(commits, source, row))
            wanted = {source: spans for source, spans in following.items() if spans}
            level += 1
        if sum(row.reads for state in self._found.values() for row in state.rows) > at_most:
            raise IrregularHistory
        for dataset, snapshot in self._unknown:
            self._question.walk.limits.add_snapshot(
                LimitReason.UNKNOWN_WRITER, dataset, snapshot, "its writer is unknown"
            )

    def _walk_line(self, line: HistoryLine, wanted: Sequence[_Wanted], level: int) -> Iterator[tuple[CommitSpan, Any]]:
        """Walk what wasn't walked of a line. Yield what its commits read."""
        self._check_identity(line)
        if not has_writes(self._connection, line.dataset):
            self._add_unknown(line, wanted)
            return
        for span, is_state in wanted:
            extended, begins = state_span(self._connection, line, span) if is_state else (span, True)
            for part in _without(extended, self._parts.setdefault(line, [])):
                for row in self._walk_part(line, part, may_begin=begins or part.low > extended.low):
                    self._check_identity(_line_of(row))
                    self._found.setdefault((line, _line_of(row)), _Sources(level)).rows.append(row)
                    yield self._parts[line][-1], row

    def _walk_part(self, line: HistoryLine, span: SnapshotSpan, *, may_begin: bool) -> list[Any]:
        commits, has_parent = commits_of(self._connection, line, span)
        rows = sources_by_job(self._connection, commits)
        self._parts[line].append(commits)
        if has_parent and not may_begin:
            self._unknown.append((line.dataset, span.low - 1))
        self.runs |= runs_with_gaps(self._connection, commits)
        return rows

    def _check_identity(self, line: HistoryLine) -> None:
        """Renamed tables are followed commit by commit."""
        identities = self._question.walk.identities
        is_alone = identities.group(line.dataset) == {line.dataset: ALWAYS}
        if not is_alone or identities.one(line.dataset, line.generation) != line.dataset:
            raise IrregularHistory

    def _add_unknown(self, line: HistoryLine, wanted: Sequence[_Wanted]) -> None:
        """Of a table whose writers nobody knows, each snapshot that was read is unknown."""
        if not all(is_state for _, is_state in wanted):
            raise IrregularHistory
        self._unknown += [(line.dataset, number) for (low, high), _ in wanted for number in range(low, high + 1)]

    def _next(self, commits: CommitSpan, source: HistoryLine, row: Any) -> Iterator[_Wanted]:
        """Yield what has to be walked next: spans, and whether as states."""
        changes = row.mode == CHANGES
        if row.numbered < row.reads:
            self.unversioned.add(source.dataset)
        if changes and row.bounded < row.numbered:
            raise IrregularHistory
        if row.numbered and not changes and row.newest - row.oldest + 1 == row.numbers:
            yield SnapshotSpan(row.oldest, row.newest), True
        elif row.numbered:
            for span in spans_read(self._connection, commits, source, changes=changes):
                yield span, not changes

    def edges(self, edge_of: Callable[[int, list[LineageStep]], StateEdge]) -> Iterator[StateEdge]:
        """Yield the folded edges. Of each the oldest and the newest commit are loaded; the others are added up."""
        for (line, source), found in self._found.items():
            total = found.rows[0] if len(found.rows) == 1 else self._total(line, source)
            steps = self._ends(line, source, total)
            yield _added_up(edge_of(found.depth, steps), steps, found.rows, total)

    def _total(self, line: HistoryLine, source: HistoryLine) -> Any:
        alone = sources_alone(self._connection, self._parts[line])
        return next(ref for ref in alone if _line_of(ref) == source)

    def _ends(self, line: HistoryLine, source: HistoryLine, total: Any) -> list[LineageStep]:
        makers = self._question.walk.makers
        refs = [SnapshotRef(*line[:1], number, *line[1:]) for number in ends_of(self._connection, line, total)]
        makers.load(refs)
        writes = {maker.id: maker for ref in refs for maker in makers.of(ref)}
        sources = load_sources(self._connection, list(writes.values()))
        steps = [LineageStep(0, write, read) for write in writes.values() for read in sources[write.id]]
        mine = [step for step in steps if HistoryLine(step.read.dataset or b"", *step.read[5:7]) == source]
        return sorted(mine, key=lambda step: (step.write.at, step.read.snapshot or 0))


def _line_of(row: Any) -> HistoryLine:
    return HistoryLine(bytes(row.dataset), row.generation, row.branch)


def _without(span: SnapshotSpan, parts: Sequence[CommitSpan]) -> list[SnapshotSpan]:
    """Return what is left of a span without these parts."""
    found = [span]
    for _, (low, high) in parts:
        halves = [
            (SnapshotSpan(one.low, min(one.high, low - 1)), SnapshotSpan(max(one.low, high + 1), one.high))
            for one in found
        ]
        found = [half for both in halves for half in both if half.low <= half.high]
    return found


def _added_up(ends: StateEdge, steps: Sequence[LineageStep], rows: Sequence[Any], total: Any) -> StateEdge:
    """Return the edge of all commits, from that of its oldest and newest."""
    jobs = {name for use in rows if (name := format_job_key((use.job_namespace, use.job))) is not None}
    return replace(
        ends,
        target=replace(ends.target, first=total.low, last=total.high, count=total.commits),
        source=_source_range(ends.source, steps, total),
        modes=tuple(sorted({use.mode for use in rows})),
        commits=total.commits,
        jobs=tuple(sorted(jobs)),
        first_at=moment_of(total.first_at),
        last_at=moment_of(total.last_at),
    )


def _source_range(ends: VersionRange, steps: Sequence[LineageStep], total: Any) -> VersionRange:
    found = replace(ends, count=total.without_version + total.with_version + total.without_any)
    if not is_unordered(steps[-1].read.format):
        found = replace(found, first=total.oldest, last=total.newest)
    elif 0 < total.numbered < total.reads:
        raise IrregularHistory
    if total.ranges < total.reads:
        return replace(found, since=None)
    return found if is_unordered(steps[0].read.format) else replace(found, since=total.since)
