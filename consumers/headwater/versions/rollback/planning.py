"""Plans a roll-back from the store, and from the checkpoints of aligned jobs. Nothing is changed. Tables are looked at
if the caller can do that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.lineage.questions.answers import AnswerLimit, LimitReason
from headwater.lineage.questions.completeness import complete_until, gaps
from headwater.lineage.questions.names import find
from headwater.versions.alignment import NoAlignmentError
from headwater.versions.answers import ConsistencyAnswer, text_of_contents
from headwater.versions.cuts import DataVersion
from headwater.versions.questions import check, find_alignment
from headwater.versions.rollback.model import RollbackPlan, RollbackVerdict
from headwater.versions.rollback.rolled_jobs import JobFinder
from headwater.versions.rollback.rolled_tables import RollbackCandidate, TableFinder
from headwater.versions.version_question import NamedVersion

_THERE: Final = frozenset({RollbackVerdict.BACK, RollbackVerdict.STAYS})


def plan_rollback(
    connection: Connection,
    asked: str | tuple[str, DataVersion],
    *,
    is_chain: bool = False,
    problem: Callable[[str, int], str | None] | None = None,
    now: datetime | None = None,
) -> RollbackPlan:
    """Return how a table goes back to a snapshot, `"lake.ods.orders@4"`, and with `is_chain` all that was made from it;
    or how all tables of a data version of a group do, with all that was made from them.

    `problem` says why a table can't have the rows of a snapshot any more, such as `SessionTables.problem`. Without it
    the plan doesn't know which snapshots have expired.

    A ConfigurationError says that there is no such table or snapshot, that it has expired, or that the newest snapshot
    isn't known to be made from it.
    """
    until = complete_until(connection, now)
    sources = _source(connection, asked) if isinstance(asked, str) else _tables_of(asked[1])
    is_chain = is_chain or not isinstance(asked, str)
    found = TableFinder(connection, sources, is_chain=is_chain)
    if is_chain:
        _align(connection, found)
    if problem is not None:
        found.look(problem)
    answer = _check(connection, found)
    found.count_lost()
    jobs = JobFinder(connection, found)
    tables = tuple(found.planned(table) for table in found.order)
    first = found.order[0]
    return RollbackPlan(
        asked=asked if isinstance(asked, str) else f"data version {asked[0]}@{asked[1].number}",
        source=first.dataset.label,
        snapshot=first.target or 0,
        is_chain=is_chain,
        tables=tables,
        jobs=tuple(jobs.planned()),
        groups=tuple(jobs.groups),
        belong_together=None if answer is None else answer.is_consistent,
        differences=() if answer is None else tuple(_differences(answer)),
        complete_until=until,
        limits=(*found.limits, *_gaps(connection, found, now)),
    )


def _source(connection: Connection, asked: str) -> dict[str, int]:
    named = find(connection, asked)
    label = named.dataset.label
    if named.column is not None:
        raise ConfigurationError(f"{asked!r} names a column: tables are rolled back, so write {label}@SNAPSHOT")
    if named.snapshot is None:
        raise ConfigurationError(f"to which snapshot does {label} go back? Write it as {label}@SNAPSHOT")
    return {label: named.snapshot}


def _tables_of(version: DataVersion) -> dict[str, int]:
    return {table: each.snapshot for table, each in version.cut.snapshots.items()}


def _align(connection: Connection, found: TableFinder) -> None:
    """Let the tables that have something of what is lost go to the newest versions that belong together, if there are
    any: with the tables that stay, or else among themselves."""
    back = [table for table in found.made if table.verdict is RollbackVerdict.BACK]
    stay = [table for table in found.made if table.verdict is RollbackVerdict.STAYS and table.has_source]
    for fixed in ([*found.sources, *stay], found.sources) if back else ():
        at = {table.dataset.label: table.target for table in fixed if table.target is not None}
        try:
            rows = find_alignment(connection, [NamedVersion(table.dataset) for table in back], at).rows
        except NoAlignmentError:
            continue
        for table, row in zip(back, rows, strict=True):
            if row.steps_behind and row.table.snapshot is not None:
                table.go_back(row.table.snapshot)
        return


def _check(connection: Connection, found: TableFinder) -> ConsistencyAnswer | None:
    """Ask whether the tables belong together that go back or stay."""
    there = [
        NamedVersion(table.dataset, table.target)
        for table in found.order
        if table.target is not None and table.has_source and table.verdict in _THERE
    ]
    return check(connection, there) if len(there) > 1 else None


def _differences(answer: ConsistencyAnswer) -> list[str]:
    if answer.is_consistent:
        return []
    texts = [text_of_contents(row) for row in answer.rows if not row.is_same]
    return texts + [f"{limit.about}: {limit.detail}" for limit in answer.limits if answer.is_consistent is None]


def _gaps(connection: Connection, found: TableFinder, now: datetime | None) -> list[AnswerLimit]:
    """Return what may be missing from the store of these tables, since the first lost commit."""
    places: Mapping[str, RollbackCandidate] = {table.dataset.place: table for table in found.order}
    since = found.first_lost_at
    missing = gaps(connection, since=since, now=now) if since is not None else ()
    limits = []
    for gap in missing:
        if gap.dataset is None or gap.dataset in places:
            about = gap.job or gap.application or gap.dataset or "a producer"
            limits.append(AnswerLimit(LimitReason.GAP, about, ": ".join(filter(None, (gap.reason, gap.detail)))))
    return limits
