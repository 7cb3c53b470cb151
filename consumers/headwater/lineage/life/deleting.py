"""Drafts of the events that delete lineage, and how much each would hide. An event hides what was told up to its time,
also what comes later of that time; nothing is taken from what is told after it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, func, literal, select

from headwater.errors import TerminalError
from headwater.events.administration import LineageDeleted, LineageScope
from headwater.events.clock import micros_of, moment_of
from headwater.events.names import CatalogId, DatasetId, JobName
from headwater.events.scalars import Format
from headwater.lineage.law.commits import SINK, SOURCE
from headwater.lineage.law.telling import catalog_hash, dataset_hash, job_of
from headwater.lineage.law.visible import DATA, TABLES_OF
from headwater.lineage.questions.about import is_job
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.catalogs import is_of
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.visible import not_deleted

NOT_IN_ORDER: Final = frozenset({Format.ICEBERG.value})
"""Formats whose snapshot ids say nothing of which came first."""


class NotInOrderError(TerminalError):
    """What is up to a snapshot can't be said by its number."""


def delete_job(
    scope: LineageScope, job: JobName, *, before: datetime, run: UUID | None = None, by: str | None = None
) -> LineageDeleted:
    """A job's lineage, and that of all its steps where it is an application or a block."""
    return LineageDeleted(scope=scope, of_job=job, steps=True, of_run=run, before=before, by=by)


def expire_before(before: datetime, *, catalog: CatalogId | None = None, by: str | None = None) -> LineageDeleted:
    """Data lineage that is older; table lineage stays."""
    return LineageDeleted(scope=LineageScope.DATA, before=before, catalog=catalog, by=by)


def expire_snapshots(
    connection: Connection, dataset: DatasetId, up_to: int, *, before: datetime, by: str | None = None
) -> LineageDeleted:
    """Data lineage of a dataset's snapshots that are gone: by number where numbers have an order, else what was told of
    the dataset up to the time of the last of them."""
    row = table_of(t.WRITE).c
    mine = row.dataset == dataset_hash(dataset)
    formats = set(connection.scalars(select(row.format).where(mine, row.snapshot == up_to).distinct()))
    if not formats & NOT_IN_ORDER:
        return LineageDeleted(scope=LineageScope.DATA, dataset=dataset, up_to_snapshot=up_to, before=before, by=by)
    made = connection.scalar(select(func.max(row.last)).where(mine, row.snapshot == up_to))
    if made is None:
        raise NotInOrderError(f"snapshots of {dataset} have no order, and when {up_to} was made isn't known")
    told = min(moment_of(made), before)
    return LineageDeleted(scope=LineageScope.DATA, dataset=dataset, before=told, by=by)


def hidden_by(connection: Connection, draft: LineageDeleted) -> int:
    """How many facts that are visible now it would hide: reads and writes of tables by runs, or of snapshots."""
    if draft.scope is LineageScope.DATA:
        return sum(_count(connection, _data(kind, draft)) for kind in (t.READ, t.WRITE))
    sides = {LineageScope.SOURCE_TABLES: (SOURCE,), LineageScope.SINK_TABLES: (SINK,)}
    tables = sum(_count(connection, _tables(side, draft)) for side in sides.get(draft.scope, (SOURCE, SINK)))
    if draft.scope is not LineageScope.ALL:
        return tables
    return tables + sum(_count(connection, _data(kind, draft)) for kind in (t.READ, t.WRITE))


def _count(connection: Connection, chosen: Any) -> int:
    return int(connection.scalar(select(func.count()).select_from(chosen.subquery())) or 0)


def _tables(side: str, draft: LineageDeleted) -> Any:
    row = table_of(t.TABLE_LINEAGE).c
    visible = and_(row.last > row.deleted, not_deleted(row, row, TABLES_OF[side]))
    return select(row.id).where(row.side == side, *_meant(row, row, draft), visible)


def _data(kind: Any, draft: LineageDeleted) -> Any:
    row, commit = table_of(kind), table_of(t.COMMIT)
    its = and_(row.c.commit_id == commit.c.id, row.c.barrier == commit.c.barrier)
    conditions = _meant(row.c, commit.c, draft)
    if draft.up_to_snapshot is not None:
        conditions.append(row.c.snapshot <= draft.up_to_snapshot)
    visible = and_(row.c.last > row.c.deleted, not_deleted(row.c, commit.c, DATA))
    return select(row.c.id).join_from(row, commit, its).where(*conditions, visible)


def _meant(row: Any, by: Any, draft: LineageDeleted) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [row.last <= micros_of(draft.before)]
    if draft.of_job is not None:
        namespace, name = job_of(draft.of_job)
        conditions.append(is_job(by, (str(namespace), str(name)), steps=draft.steps))
    if draft.of_run is not None:
        conditions.append(by.run == draft.of_run.bytes)
    if draft.dataset is not None:
        conditions.append(row.dataset == dataset_hash(draft.dataset))
    if draft.catalog is not None:
        conditions.append(is_of(row, literal(catalog_hash(draft.catalog))))
    return conditions
