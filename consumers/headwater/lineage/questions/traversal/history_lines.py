"""The history of a table whose snapshots are numbered without a hole, added up in the database.

What doesn't fit raises `IrregularHistory`: then the history has to be walked write by write.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Join, String, and_, case, cast, func, or_, select

from headwater.lineage.mapping.commits import ALL, SOME
from headwater.lineage.questions.traversal.snapshot_rows import CHANGES, NOTHING, ORDERED
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.accesses import access_of
from headwater.lineage.sql.tables import row_exists, table_of

_MOST_CHANGES: Final = 50
_MOST_SPANS: Final = 50
_NO_STEPS: Final = ("UNKNOWN", "ROLLBACK", "FAST_FORWARD", "RESTORE", "CHERRY_PICK")
"""Kinds of commits that may be something else than a step from one number to the next."""


class IrregularHistory(Exception):  # noqa: N818 - nothing failed: another way has to be taken
    """The numbers of a history have a hole, or say too little."""


class HistoryLine(NamedTuple):
    """One branch of one generation of a table."""

    dataset: bytes
    generation: str | None
    branch: str | None


class SnapshotSpan(NamedTuple):
    """Snapshots from the lowest to the highest number."""

    low: int
    high: int


class CommitSpan(NamedTuple):
    """All commits of a span."""

    line: HistoryLine
    span: SnapshotSpan


def state_span(connection: Connection, line: HistoryLine, span: SnapshotSpan) -> tuple[SnapshotSpan, bool]:
    """Extend a span down to the newest full overwrite before it, and return whether there is one. Rows of these commits
    can be in the states of the span."""
    row = access_of(t.WRITE).c
    mine = _writes_on(line, row.snapshot <= span.low)
    restarts = select(row.snapshot).where(*mine, row.replaced == ALL).order_by(row.snapshot.desc()).limit(1)
    low = connection.scalar(restarts)
    creations = [change.produced for change in _changes(connection, line, span.low) if change.kind == "CreateTable"]
    created = max((creation for creation in creations if low is None or creation > low), default=None)
    if created is not None and connection.scalar(_count(_writes_on(line, row.snapshot == created))) == 0:
        return SnapshotSpan(created + 1, span.high), True
    if low is not None:
        return SnapshotSpan(low, span.high), True
    low = connection.scalar(select(func.min(row.snapshot)).where(*mine))
    if low is None:
        raise IrregularHistory
    return SnapshotSpan(low, span.high), False


def commits_of(connection: Connection, line: HistoryLine, span: SnapshotSpan) -> tuple[CommitSpan, bool]:
    """Return the commits of a span, each of which is the next step of its line, and whether the first of them was made
    on one before the span."""
    row, changes = access_of(t.WRITE).c, _changes(connection, line, span.high)
    filled = {change.produced for change in changes if change.produced >= span.low}
    if any(change.parent_snapshot != change.produced - 1 for change in changes if change.produced >= span.low - 1):
        raise IrregularHistory
    commits = CommitSpan(line, span)
    steps = select(
        func.count().label("number"),
        func.count(row.snapshot.distinct()).label("numbers"),
        func.count(case((row.snapshot.in_(filled), 1))).label("doubly"),
        func.min(row.snapshot).label("low"),
        func.max(row.snapshot).label("high"),
        func.max(case((_is_step(row, commits), 0), else_=1)).label("odd"),
        func.min(case((row.parent_snapshot.is_not(None), row.snapshot))).label("least_child"),
    ).join_from(access_of(t.WRITE), table_of(t.COMMIT), _is_its_commit())
    found = connection.execute(steps.where(*_writes_on(line, row.snapshot.between(*span)))).one()
    number = found.number + len(filled) - found.doubly
    if found.odd or found.number != found.numbers or number != span.high - span.low + 1 or found[3:5] != span:
        raise IrregularHistory
    return commits, found.least_child == span.low


def has_writes(connection: Connection, dataset: bytes) -> bool:
    """Return whether anything is known of what wrote a table."""
    row, change = access_of(t.WRITE).c, table_of(t.MODIFICATION).c
    written = select(row.id).where(row.dataset == dataset).limit(1)
    changed = select(change.id).where(change.dataset == dataset, change.produced.is_not(None)).limit(1)
    return any(connection.scalar(condition) is not None for condition in (written, changed))


def sources_by_job(connection: Connection, commits: CommitSpan) -> list[Any]:
    """Return what the commits of a span read, by source, mode and job."""
    read, commit = access_of(t.READ).c, table_of(t.COMMIT).c
    key = (*_source_key(), read.mode, commit.job_namespace, commit.job)
    found: list[Any] = [*connection.execute(_added_up([commits], key))]
    if any(island.odd for island in found):
        raise IrregularHistory
    return found


def sources_alone(connection: Connection, commits: Sequence[CommitSpan]) -> Sequence[Any]:
    """Return what the commits of several spans of one table read, by source alone."""
    if len(commits) > _MOST_SPANS:
        raise IrregularHistory
    return connection.execute(_added_up(commits, _source_key())).all()


def ends_of(connection: Connection, line: HistoryLine, row: Any) -> tuple[int, int]:
    """Return the oldest and the newest of added up commits, if their times tell which they are."""
    write = access_of(t.WRITE).c
    at_ends = _writes_on(line, write.first.in_((row.first_at, row.last_at)))
    found = sorted(connection.execute(select(write.first, write.snapshot).where(*at_ends)).all())
    if [row.snapshot for row in found] != sorted({row.low, row.high}):
        raise IrregularHistory
    return row.low, row.high


def spans_read(
    connection: Connection, commits: CommitSpan, source: HistoryLine, *, changes: bool
) -> list[SnapshotSpan]:
    """Return which snapshots of a source were read, or within which changes they were."""
    read = access_of(t.READ).c
    within = read.since_snapshot - case((read.since_version.is_(None), 0), else_=1)
    since, mode = (within, read.mode == CHANGES) if changes else (read.snapshot - 1, read.mode != CHANGES)
    whose = and_(
        read.dataset == source.dataset, _is(read.generation, source.generation), _is(read.branch, source.branch)
    )
    ranges = (
        select(since.label("since"), read.snapshot.label("until"))
        .select_from(_with_reads())
        .where(*_is_in([commits]), whose, mode, read.snapshot.is_not(None))
        .distinct()
        .subquery()
    )
    before = func.max(ranges.c.until).over(order_by=(ranges.c.since, ranges.c.until), rows=(None, -1))
    reached = select(ranges, before.label("reached")).subquery()
    is_new = or_(reached.c.reached.is_(None), reached.c.since > reached.c.reached)
    starts = select(reached.c.since, reached.c.reached).where(is_new).order_by(reached.c.since).limit(_MOST_SPANS + 1)
    islands = connection.execute(starts).all()
    if len(islands) > _MOST_SPANS:
        raise IrregularHistory
    last: Any = connection.scalar(select(func.max(ranges.c.until)))
    ends = [*(island.reached for island in islands[1:]), last]
    return [
        SnapshotSpan(island.since + 1, end) for island, end in zip(islands, ends, strict=True) if end > island.since
    ]


def runs_with_gaps(connection: Connection, commits: CommitSpan) -> set[bytes]:
    """Return the runs of a span's commits of which a gap is known that is about no table."""
    gap, commit = table_of(t.GAP).c, table_of(t.COMMIT).c
    runs = select(gap.run).where(gap.dataset.is_(None), gap.run.is_not(None))
    if connection.scalar(runs.limit(1)) is None:
        return set()
    its = select(commit.run).select_from(_with_reads()).where(*_is_in([commits]), commit.run.in_(runs))
    return {bytes(place) for place in connection.scalars(its.distinct())}


def _changes(connection: Connection, line: HistoryLine, until: int) -> list[Any]:
    """Load the newest changes of the table that made snapshots."""
    row = table_of(t.MODIFICATION).c
    mine = (row.dataset == line.dataset, row.produced <= until, row.effect == "APPLIED")
    newest = select(row.produced, row.parent_snapshot, row.kind, row.generation, row.branch).where(*mine)
    found = list(connection.execute(newest.order_by(row.produced.desc()).limit(_MOST_CHANGES + 1)))
    if len(found) > _MOST_CHANGES or any(other[3:] != line[1:] for other in found):
        raise IrregularHistory
    return found


def _writes_on(line: HistoryLine, *conditions: ColumnElement[bool]) -> list[ColumnElement[bool]]:
    """Return conditions: writes of the line, and those of which it isn't known."""
    row = access_of(t.WRITE).c
    found = [row.dataset == line.dataset, *conditions]
    if line.generation is not None:
        found.append(or_(row.generation == line.generation, row.generation.is_(None)))
    return found


def _is_in(several: Sequence[CommitSpan]) -> list[ColumnElement[bool]]:
    """Return conditions: a write is in spans of one line."""
    row = access_of(t.WRITE).c
    return _writes_on(several[0].line, or_(*(row.snapshot.between(*span.span) for span in several)))


def _is_step(row: Any, commits: CommitSpan) -> ColumnElement[bool]:
    """Return a condition: a write follows the number before. The first of a span may begin a table."""
    line, (low, _) = commits
    begins = and_(row.snapshot == low, or_(row.replaced == ALL, and_(row.parent_snapshot.is_(None), row.snapshot <= 1)))
    return and_(
        or_(row.parent_snapshot == row.snapshot - 1, begins),
        _is(row.generation, line.generation),
        _is(row.branch, line.branch),
        row.format.in_(ORDERED),
        row.commit_kind.not_in(_NO_STEPS),
        row.replaced.in_((ALL, NOTHING, "PART")),
        row.made_from.in_((ALL, SOME)),
        *(column.is_(None) for column in (row.version, row.opaque, row.candidates)),
    )


def _is_its_commit() -> ColumnElement[bool]:
    row, commit = access_of(t.WRITE).c, table_of(t.COMMIT).c
    return and_(row.commit_id == commit.id, row.barrier == commit.barrier)


def _with_reads() -> Join:
    """Return writes with their commits and the reads that they were made from."""
    row, read, edge = access_of(t.WRITE).c, access_of(t.READ).c, table_of(t.COMMIT_EDGE).c
    is_one = and_(edge.write_id == row.id, edge.barrier == row.barrier, edge.read_id == read.id)
    is_listed = row_exists(table_of(t.COMMIT_EDGE), where=is_one)
    its = and_(read.commit_id == row.commit_id, read.barrier == row.barrier)
    commits = access_of(t.WRITE).join(table_of(t.COMMIT), _is_its_commit())
    return commits.join(access_of(t.READ), and_(its, or_(row.made_from == ALL, is_listed)))


def _source_key() -> tuple[Any, ...]:
    read = access_of(t.READ).c
    return (read.dataset, read.generation, read.branch)


def _added_up(several: Sequence[CommitSpan], key: Sequence[Any]) -> Any:
    """Add up the reads of commits by a key."""
    write, commit, row = (access_of(t.WRITE).c, table_of(t.COMMIT).c, access_of(t.READ).c)
    is_known = and_(
        row.dataset.is_not(None), row.opaque.is_(None), or_(row.snapshot.is_not(None), row.candidates.is_(None))
    )
    is_at = func.coalesce(commit.committed_at, write.first) == write.first
    number = func.coalesce(cast(row.snapshot, String(20)), "")
    version = case((row.version.is_not(None), number + ":" + row.version))
    named = [column.label(name) for column, name in zip(key, _KEY_NAMES, strict=False)]
    found = select(
        *named,
        func.max(case((and_(is_known, is_at), 0), else_=1)).label("odd"),
        func.min(write.snapshot).label("low"),
        func.max(write.snapshot).label("high"),
        func.count(write.snapshot.distinct()).label("commits"),
        func.min(write.first).label("first_at"),
        func.max(write.first).label("last_at"),
        func.count().label("reads"),
        func.count(row.snapshot).label("numbered"),
        func.count(row.snapshot.distinct()).label("numbers"),
        func.count(case((row.version.is_(None), row.snapshot)).distinct()).label("without_version"),
        func.count(version.distinct()).label("with_version"),
        func.max(case((and_(row.snapshot.is_(None), row.version.is_(None)), 1), else_=0)).label("without_any"),
        func.min(row.snapshot).label("oldest"),
        func.max(row.snapshot).label("newest"),
        func.count(case((row.mode == CHANGES, row.since_snapshot))).label("ranges"),
        func.count(case((and_(row.mode == CHANGES, row.snapshot.is_not(None)), row.since_snapshot))).label("bounded"),
        func.min(row.since_snapshot).label("since"),
    )
    return found.select_from(_with_reads()).where(*_is_in(several)).group_by(*key)


_KEY_NAMES: Final = ("dataset", "generation", "branch", "mode", "job_namespace", "job")


def _count(conditions: Collection[ColumnElement[bool]]) -> Any:
    return select(func.count()).select_from(access_of(t.WRITE)).where(*conditions)


def _is(column: Any, value: str | None) -> ColumnElement[bool]:
    found: ColumnElement[bool] = column.is_(None) if value is None else column == value
    return found
