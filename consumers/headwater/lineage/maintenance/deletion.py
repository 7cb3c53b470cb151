"""The events that delete lineage or unify datasets, and how much a deletion would hide.

A deletion hides what events said up to its time, including events of that time that arrive later. It hides nothing that
later events say.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, func, literal, select

from headwater.errors import TerminalError
from headwater.events.administration import DatasetsUnified, LineageDeleted, LineageScope
from headwater.events.clock import micros_of, moment_of
from headwater.events.names import CatalogId, DatasetId, JobName
from headwater.lineage.mapping.commits import SINK, SOURCE
from headwater.lineage.mapping.keys import catalog_hash, dataset_hash, job_name_key
from headwater.lineage.questions.name_checks import belongs_to_job
from headwater.lineage.questions.traversal.snapshot_rows import is_unordered
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import DATA, TABLES_OF
from headwater.lineage.sql.accesses import access_of
from headwater.lineage.sql.catalogs import belongs_to
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.tombstones import not_hidden


class UnorderedSnapshotsError(TerminalError):
    """ "Up to this snapshot" can't be expressed by its id."""


def delete_job(
    scope: LineageScope, job: JobName, *, before: datetime, run: UUID | None = None, by: str | None = None
) -> LineageDeleted:
    """Draft the deletion of a job's lineage. If the job is an application or a block, its steps are included."""
    return LineageDeleted(scope=scope, of_job=job, steps=True, of_run=run, before=before, by=by)


def expire_before(before: datetime, *, catalog: CatalogId | None = None, by: str | None = None) -> LineageDeleted:
    """Draft the expiry of data lineage that is older. Table lineage stays."""
    return LineageDeleted(scope=LineageScope.DATA, before=before, catalog=catalog, by=by)


def expire_snapshots(
    connection: Connection, dataset: DatasetId, up_to: int, *, before: datetime, by: str | None = None
) -> LineageDeleted:
    """Draft the expiry of data lineage of snapshots that no longer exist. Where snapshot ids have no order, everything
    up to the time of the newest of them expires."""
    row = access_of(t.WRITE).c
    mine = row.dataset == dataset_hash(dataset)
    formats = set(connection.scalars(select(row.format).where(mine, row.snapshot == up_to).distinct()))
    if not any(map(is_unordered, formats)):
        return LineageDeleted(scope=LineageScope.DATA, dataset=dataset, up_to_snapshot=up_to, before=before, by=by)
    made = connection.scalar(select(func.max(row.last)).where(mine, row.snapshot == up_to))
    if made is None:
        raise UnorderedSnapshotsError(f"snapshots of {dataset} have no order, and when {up_to} was made isn't known")
    until = min(moment_of(made), before)
    return LineageDeleted(scope=LineageScope.DATA, dataset=dataset, before=until, by=by)


def count_hidden(connection: Connection, draft: LineageDeleted) -> int:
    """Count the visible facts that a deletion would hide: reads and writes of tables by runs, or of snapshots."""
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
    visible = not_hidden(row, row, TABLES_OF[side])
    return select(row.id).where(row.side == side, *_draft_conditions(row, row, draft), visible)


def _data(kind: Any, draft: LineageDeleted) -> Any:
    row, commit = access_of(kind), table_of(t.COMMIT)
    its = and_(row.c.commit_id == commit.c.id, row.c.barrier == commit.c.barrier)
    conditions = _draft_conditions(row.c, commit.c, draft)
    if draft.up_to_snapshot is not None:
        conditions.append(row.c.snapshot <= draft.up_to_snapshot)
    return select(row.c.id).join_from(row, commit, its).where(*conditions, not_hidden(row.c, commit.c, DATA))


def _draft_conditions(row: Any, by: Any, draft: LineageDeleted) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [row.last <= micros_of(draft.before)]
    if draft.of_job is not None:
        namespace, name = job_name_key(draft.of_job)
        conditions.append(belongs_to_job(by, (str(namespace), str(name)), steps=draft.steps))
    if draft.of_run is not None:
        conditions.append(by.run == draft.of_run.bytes)
    if draft.dataset is not None:
        conditions.append(row.dataset == dataset_hash(draft.dataset))
    if draft.catalog is not None:
        conditions.append(belongs_to(row, literal(catalog_hash(draft.catalog))))
    return conditions


class NothingToUnifyError(TerminalError):
    """The datasets are one already."""


def unify(others: Sequence[DatasetId], into: DatasetId, *, reason: str = "", by: str | None = None) -> DatasetsUnified:
    """Draft the event that makes several datasets one. `into` is the identity that remains; rows keep their dataset,
    and queries follow the link."""
    several = tuple(dict.fromkeys(other for other in others if other != into))
    if not several:
        raise NothingToUnifyError(f"{into} is the only dataset that was named: name those that are the same as it")
    return DatasetsUnified(dataset=into, others=several, reason=reason, by=by)
