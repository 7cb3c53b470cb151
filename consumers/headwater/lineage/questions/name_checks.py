"""Tells a name that nothing has from one of which nothing is known: snapshots, branches, jobs and runs.

Tables are found by `names`, columns by `known_columns`. A question that finds nothing about one of these asks here
before it answers "nothing": a mistyped name would look as if nothing were made from it.

What a question is about, a table with all its identities or a job, and what limits every answer about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Subquery, and_, func, or_, select

from headwater.events.names import DEFAULT_JOB_NAMESPACE, VALIDATION_JOB_NAMESPACE, JobName
from headwater.lineage.questions.answers import AnswerLimit, LimitReason
from headwater.lineage.questions.completeness import gaps
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.gaps.model import format_job, time_of
from headwater.lineage.questions.names import UnknownNameError, find_dataset
from headwater.lineage.questions.traversal.identities import Era, Identities, in_eras
from headwater.lineage.questions.traversal.snapshot_rows import ORDERED
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.accesses import access_of
from headwater.lineage.sql.tables import table_of

_GAPS: Final = 1_000


@dataclass(frozen=True)
class TableSubject:
    """A table with all its identities: a rename may have moved its data, or several datasets were unified."""

    dataset: Dataset
    eras: Mapping[bytes, Era]
    """Its identities, each with the times for which it holds: another table may have had the place before or after."""

    @property
    def keys(self) -> tuple[bytes, ...]:
        """All identities, that of the dataset first."""
        return tuple(dict.fromkeys((self.dataset.key, *self.eras)))

    def is_in(self, row: Any) -> ColumnElement[bool]:
        """Return a condition: a row with a dataset, `first` and `last` is about this table."""
        return in_eras(row, self.eras)

    def holds_at(self, dataset: bytes, time: int) -> bool:
        """Return whether a dataset was this table at a time."""
        era = self.eras.get(dataset)
        return era is not None and era.since < time <= era.until

    @property
    def label(self) -> str:
        return self.dataset.label


def resolve_table(connection: Connection, table: str | Dataset) -> TableSubject:
    """Resolve what a person typed, or a known dataset."""
    dataset = find_dataset(connection, table) if isinstance(table, str) else table
    return TableSubject(dataset, Identities(connection).group(dataset.key))


def job_key(job: JobName | str) -> tuple[str, str]:
    """Return a job's namespace and name. A text is a name in the default namespace."""
    if isinstance(job, str):
        return DEFAULT_JOB_NAMESPACE, job
    return job.namespace or DEFAULT_JOB_NAMESPACE, job.name


def belongs_to_job(row: Any, job: tuple[str, str], *, steps: bool = True) -> ColumnElement[bool]:
    """Return a condition: the job, or one of its steps, reported the row."""
    mine = and_(row.job_namespace == job[0], row.job == job[1])
    return or_(mine, and_(row.parent_namespace == job[0], row.parent_job == job[1])) if steps else mine


def is_no_validation(row: Any) -> ColumnElement[bool]:
    """Return a condition: the row is of no job that ran again only to be compared with what it had made."""
    return or_(row.job_namespace.is_(None), row.job_namespace != VALIDATION_JOB_NAMESPACE)


def subject_limits(
    connection: Connection,
    *,
    table: TableSubject | None = None,
    job: JobName | str | None = None,
    now: datetime | None = None,
) -> tuple[AnswerLimit, ...]:
    """Return the gaps and deletions that concern a table or a job."""
    about = table.label if table else str(job)
    keys = table.keys if table else None
    name = JobName(name=job) if isinstance(job, str) else job
    found = gaps(connection, datasets=keys, job=name, at_most=_GAPS, now=now)
    counted = Counter(gap.reason or gap.cause.value for gap in found)
    limits = [AnswerLimit(LimitReason.GAP, about, f"{reason} ({number})") for reason, number in sorted(counted.items())]
    return (*limits, *deletion_limits(connection, about, keys, None if job is None else job_key(job)))


def deletion_limits(
    connection: Connection, about: str, keys: Collection[bytes] | None, job: tuple[str, str] | None
) -> Iterator[AnswerLimit]:
    """Yield what was deleted of a table's or a job's lineage, by scope."""
    stone, row = table_of(t.TOMBSTONE).c, table_of(t.TABLE_LINEAGE).c
    of_runs = select(row.run).where(row.run.is_not(None))
    conditions: list[ColumnElement[bool]] = []
    if keys is not None:
        of_runs = of_runs.where(row.dataset.in_(keys))
        jobs = select(row.job).where(row.dataset.in_(keys))
        conditions += [stone.dataset.in_(keys), stone.job.in_(jobs)]
    if job is not None:
        of_runs = of_runs.where(belongs_to_job(row, job))
        conditions += [and_(stone.job_namespace == job[0], stone.job == job[1])]
    everything = and_(stone.job.is_(None), stone.run.is_(None), stone.dataset.is_(None))
    chosen = select(stone.scope, func.count(), func.max(stone.deleted))
    conditions += [stone.run.in_(of_runs), everything]
    for scope, _, deleted in connection.execute(chosen.where(or_(*conditions)).group_by(stone.scope)):
        word = {"DATA": "data lineage", "ALL": "table and data lineage"}.get(scope, "table lineage")
        yield AnswerLimit(LimitReason.DELETED, about, f"some {word} up to {_text(time_of(deleted))} was deleted")


def _text(moment: datetime | None) -> str:
    return "?" if moment is None else moment.isoformat(timespec="seconds")


_NEAR: Final = 10_000
"""How many names are searched for similar ones."""
_NEWEST: Final = 3


def unknown_name(what: str, name: str, known: Iterable[str], otherwise: str = "", *, of: str = "") -> UnknownNameError:
    """Return the error about a name that nothing has, or nothing `of` a table, with those that are spelled alike."""
    folded = {spelling.lower(): spelling for spelling in known}
    near = [folded[spelling] for spelling in get_close_matches(name.lower(), folded, 3, 0.6)]
    hint = f"did you mean {' or '.join(near)}?" if near else otherwise or "nothing of a like name is there either"
    return UnknownNameError(f"the store knows no {what} {name!r}{f' of {of}' if of else ''}; {hint}")


def check_snapshot(connection: Connection, about: TableSubject, snapshot: int) -> None:
    """Raise an error if the store has never seen this snapshot of a table, neither written, read, tagged nor made."""
    seen = _seen_snapshots(about)
    if any(connection.scalar(select(one.c[0]).where(one.c[0] == snapshot).limit(1)) is not None for one in seen):
        return
    if _is_in_between(connection, about, snapshot, seen):
        return
    raise _unknown_snapshot(connection, about, snapshot)


def _seen_snapshots(about: TableSubject) -> list[Subquery]:
    write, read = access_of(t.WRITE).c, access_of(t.READ).c
    change, tag, branch = (table_of(kind).c for kind in (t.MODIFICATION, t.TAG, t.BRANCH))
    columns = (
        *((write, write.snapshot), (write, write.parent_snapshot), (read, read.snapshot), (read, read.since_snapshot)),
        *((change, change.produced), (change, change.parent_snapshot)),
        *((tag, tag.snapshot), (branch, branch.from_snapshot)),
    )
    return [
        select(column).where(row.dataset.in_(about.keys), column.is_not(None)).subquery() for row, column in columns
    ]


def _is_in_between(connection: Connection, about: TableSubject, snapshot: int, seen: Sequence[Subquery]) -> bool:
    """Return whether a format that counts its snapshots has made this one: one before and one after it are known."""
    place = table_of(t.PLACE).c
    formats = set(connection.scalars(select(place.format).where(place.dataset.in_(about.keys)).distinct()))
    if not formats.intersection(ORDERED):
        return False
    ends = [connection.execute(select(func.min(one.c[0]), func.max(one.c[0]))).one() for one in seen]
    known = [column for pair in ends for column in pair if column is not None]
    return bool(known) and min(known) < snapshot < max(known)


def _unknown_snapshot(connection: Connection, about: TableSubject, snapshot: int) -> UnknownNameError:
    row = access_of(t.WRITE).c
    made = select(row.snapshot).where(row.dataset.in_(about.keys), row.snapshot.is_not(None))
    newest = [str(at) for at in connection.scalars(made.order_by(row.first.desc()).limit(_NEAR))]
    otherwise = f"its newest are {', '.join(newest[:_NEWEST])}" if newest else "it knows none of this table"
    deleted = [limit.detail for limit in deletion_limits(connection, about.label, about.keys, None)]
    return unknown_name("snapshot", str(snapshot), newest, "; ".join((otherwise, *deleted)), of=about.label)


def check_branch(connection: Connection, about: TableSubject, branch: str) -> None:
    """Raise an error if the store has never seen this branch of a table."""
    row, place = table_of(t.BRANCH).c, table_of(t.PLACE).c
    chosen = (select(side.branch).where(side.dataset.in_(about.keys)).distinct() for side in (row, place))
    known = {branch for one in chosen for branch in connection.scalars(one) if branch is not None}
    if branch not in known:
        otherwise = f"it has {', '.join(sorted(known))}" if known else "it knows none but the main one"
        raise unknown_name("branch", branch, known, otherwise, of=about.label)


def check_job(connection: Connection, job: tuple[str | None, str]) -> None:
    """Raise an error if nobody has ever reported this job, by itself or as what has steps. `job` is a namespace, None
    for any, and a name."""
    namespace, name = job
    for row in (table_of(t.JOB).c, table_of(t.RUN).c):
        mine, parent = row.job == name, row.parent_job == name
        if namespace is not None:
            mine, parent = and_(mine, row.job_namespace == namespace), and_(parent, row.parent_namespace == namespace)
        if connection.execute(select(row.job).where(or_(mine, parent)).limit(1)).first() is not None:
            return
    raise _unknown_job(connection, job)


def _unknown_job(connection: Connection, job: tuple[str | None, str]) -> UnknownNameError:
    row = table_of(t.JOB).c
    pairs = ((row.job_namespace, row.job), (row.parent_namespace, row.parent_job))
    known = {
        (name_pair[0], name_pair[1])
        for pair in pairs
        for name_pair in connection.execute(select(*pair).distinct().limit(_NEAR))
    }
    elsewhere = sorted({namespace for namespace, name in known if name == job[1] and namespace is not None})
    if elsewhere:
        hint = f"one of that name is in the namespace {' and one in '.join(elsewhere)}: name that by --job-namespace"
        return UnknownNameError(f"the store knows no job {format_job(*job)!r}; {hint}")
    return unknown_name("job", job[1], filter(None, (name for _, name in known)))


def check_run(connection: Connection, run: UUID) -> None:
    """Raise an error if nothing was ever reported of this run."""
    row = table_of(t.RUN).c
    if connection.scalar(select(row.run).where(row.run == run.bytes).limit(1)) is None:
        newest = connection.scalars(select(row.run).order_by(row.first.desc()).limit(_NEAR))
        known = [str(UUID(bytes=bytes(run))) for run in newest]
        raise unknown_name("run", str(run), known, "`headwater job runs` lists those that it knows")


def check_catalog(connection: Connection, name: str) -> None:
    """Raise an error if no catalog was ever called so."""
    known: set[Any] = set(connection.scalars(select(table_of(t.CATALOG_NAME).c.name).distinct().limit(_NEAR)))
    if name not in known:
        otherwise = f"it knows {', '.join(sorted(known))}" if known else "it knows none"
        raise unknown_name("catalog", name, known, otherwise)
