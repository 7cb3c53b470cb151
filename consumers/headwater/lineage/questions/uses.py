"""Who uses a table: the jobs that read it, their users, and how much is made from what they write."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import Connection, and_, select

from headwater.lineage.mapping.commits import SOURCE
from headwater.lineage.questions.answers import Answer, AnswerLimit, LimitReason
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.gaps.model import format_job
from headwater.lineage.questions.jobs import TableAccess, group_accesses, times_of
from headwater.lineage.questions.reachability import AT_MOST, ReachableTables, find_reachable_tables
from headwater.lineage.questions.subject import TableSubject, is_no_validation, resolve_table, subject_limits
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import TABLES_OF
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.tombstones import not_hidden

_DEPTH: Final = 100


@dataclass(frozen=True)
class Use:
    """A job that reads a table."""

    job: str | None
    parent: str | None
    users: tuple[str, ...]
    """Who ran it, as far as that is known."""
    first: datetime | None
    last: datetime | None
    runs: int
    last_run: UUID | None
    writes: int
    """How many tables it makes from this one."""
    downstream: int
    """How many tables can be reached from those, including them."""


def uses(connection: Connection, table: str | Dataset, *, now: datetime | None = None) -> Answer[Use]:
    """Return the jobs that use a table, the most recent first. Validations are left out."""
    about = resolve_table(connection, table)
    row = table_of(t.TABLE_LINEAGE).c
    named = (row.job_namespace, row.job, row.parent_namespace, row.parent_job)
    around = find_reachable_tables(connection, about.dataset.key, up=False, depth=_DEPTH)
    users = _users(connection, about)
    found: list[Use] = []
    for group in group_accesses(connection, TableAccess.READS, named, and_(about.is_in(row), is_no_validation(row))):
        job = (group.row.job_namespace, group.row.job)
        own = {link.target for link in around.links if link.source == around.start and link.job == job}
        found.append(
            Use(
                format_job(*job),
                format_job(group.row.parent_namespace, group.row.parent_job),
                tuple(sorted(users[job])),
                *times_of(group),
                writes=len(own),
                downstream=len(_behind(around, own)),
            )
        )
    names = load_datasets(connection, around.limits.datasets)
    limits = (*subject_limits(connection, table=about, now=now), *around.limits.as_limits(names))
    if around.is_cut:
        limits = (*limits, AnswerLimit(LimitReason.CUT, about.label, f"the first {AT_MOST} tables downstream"))
    return Answer(tuple(found), complete_until(connection, now), limits)


def _users(connection: Connection, about: TableSubject) -> dict[tuple[str | None, str | None], set[str]]:
    row, run = table_of(t.TABLE_LINEAGE).c, table_of(t.RUN).c
    is_one = (row.side == SOURCE, about.is_in(row))
    chosen = select(row.job_namespace, row.job, run.user_name).distinct()
    chosen = chosen.join_from(table_of(t.TABLE_LINEAGE), table_of(t.RUN), run.run == row.run)
    chosen = chosen.where(*is_one, run.user_name.is_not(None), not_hidden(row, row, TABLES_OF[SOURCE]))
    found: dict[tuple[str | None, str | None], set[str]] = defaultdict(set)
    for namespace, job, user in connection.execute(chosen):
        found[namespace, job].add(user)
    return found


def _behind(around: ReachableTables, tables: Iterable[bytes]) -> set[bytes]:
    """Return these tables and everything that is made from them."""
    onward: dict[bytes, set[bytes]] = defaultdict(set)
    for link in around.links:
        onward[link.source].add(link.target)
    known, new = set(tables), list(tables)
    while new:
        for target in onward[new.pop()] - known:
            known.add(target)
            new.append(target)
    return known
