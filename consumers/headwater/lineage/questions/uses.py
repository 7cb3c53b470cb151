"""Who uses a table: the jobs that read it, their users, and how much is made from what they write.

Which tables are made from which, around one table. For questions that need the path without its details.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, and_, select

from headwater.lineage.mapping.commits import SOURCE
from headwater.lineage.questions.answers import Answer, AnswerLimit, LimitReason
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.gaps.model import format_job
from headwater.lineage.questions.jobs import TableAccess, group_accesses, times_of
from headwater.lineage.questions.name_checks import TableSubject, is_no_validation, resolve_table, subject_limits
from headwater.lineage.questions.traversal.identities import Era
from headwater.lineage.questions.traversal.limits import LimitCollector
from headwater.lineage.questions.traversal.table_edges import TableWalk
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import TABLES_OF
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.tombstones import not_hidden

AT_MOST: Final = 10_000


class TableLink(NamedTuple):
    """A job wrote one table from another. Without a job the target is a view on the source."""

    source: bytes
    target: bytes
    job: tuple[str | None, str | None]


@dataclass
class ReachableTables:
    """Tables by distance, under their current identities."""

    start: bytes
    depths: dict[bytes, int]
    links: set[TableLink] = field(default_factory=set)
    eras: dict[bytes, Mapping[bytes, Era]] = field(default_factory=dict)
    """The identities of each table, with the times for which they hold."""
    views: set[bytes] = field(default_factory=set)
    limits: LimitCollector = field(default_factory=LimitCollector)
    """What the walk met and couldn't follow."""
    is_cut: bool = False


def find_reachable_tables(
    connection: Connection, dataset: bytes, *, up: bool, depth: int, at_most: int = AT_MOST
) -> ReachableTables:
    """Return all tables upstream or downstream of a table. The table itself has distance 0."""
    limits = LimitCollector()
    walk = TableWalk(connection, limits, upward=up)
    start = walk.identities.one(dataset)
    found = ReachableTables(start, {start: 0}, eras={start: walk.identities.group(start)}, limits=limits)
    new = {start}
    for level in range(1, depth + 1):
        steps = [step for portion in walk.steps(walk.identities.members(new)) for step in portion]
        new = {step.far for step in steps} - found.depths.keys()
        if len(found.depths) + len(new) > at_most:
            found.is_cut = True
            return found
        found.depths.update(dict.fromkeys(new, level))
        for step in steps:
            source, target = (step.far, step.near) if up else (step.near, step.far)
            found.links.add(TableLink(source, target, (step.edge.job_namespace, step.edge.job)))
            if step.is_view:
                found.views.add(target)
        if not new:
            return found
        walk.identities.load(new)
        found.eras.update((key, walk.identities.group(key)) for key in new)
    found.is_cut = any(
        step.far not in found.depths for portion in walk.steps(walk.identities.members(new)) for step in portion
    )
    return found


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
