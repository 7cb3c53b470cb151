"""The names, generations and branches of a dataset: what it was called and when, and how often it was recreated."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from headwater.lineage.questions.answers import Answer
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.gaps.model import time_of
from headwater.lineage.questions.name_checks import resolve_table, subject_limits
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import table_of


@dataclass(frozen=True)
class Alias:
    """A name that a catalog had for it."""

    name: str
    place: str
    """Where the data was under this name."""
    first: datetime | None
    last: datetime | None
    """When it was seen first and last."""
    ended: datetime | None
    """When the name was taken away; None where it holds."""


@dataclass(frozen=True)
class TableGeneration:
    """A generation: from when it was made to when it was dropped, with snapshot ids of its own."""

    generation: str
    place: str
    format: str | None
    first: datetime | None
    last: datetime | None
    ended: datetime | None


@dataclass(frozen=True)
class RecordedBranch:
    """A branch as events told of it, in the columns of Paimon's design of branches."""

    name: str
    tag_name: str | None
    tagged_snapshot_id: int | None
    create_time: datetime | None
    """When it was created last; None where only its use is known."""
    generation: str | None
    ended: datetime | None
    """When it was dropped; None where it is there."""


def aliases(connection: Connection, table: str | Dataset, *, now: datetime | None = None) -> Answer[Alias]:
    """Return all names of a table and its identities, in the order of their first event."""
    about = resolve_table(connection, table)
    row, places = table_of(t.ALIAS).c, load_datasets(connection, about.keys)
    found = sorted(
        select_by_keys(connection, select(table_of(t.ALIAS)), row.dataset, about.keys), key=lambda alias: alias.first
    )
    rows = tuple(
        Alias(
            ".".join(part for part in (alias.catalog, alias.database_name, alias.table_name) if part),
            places[bytes(alias.dataset)].place,
            *_times(alias.first, alias.last, alias.deleted),
        )
        for alias in found
    )
    return Answer(rows, complete_until(connection, now), subject_limits(connection, table=about, now=now))


def generations(
    connection: Connection, table: str | Dataset, *, now: datetime | None = None
) -> Answer[TableGeneration]:
    """Return all generations of a table, in the order of their first event."""
    about = resolve_table(connection, table)
    row, places = table_of(t.GENERATION).c, load_datasets(connection, about.keys)
    found = sorted(
        select_by_keys(connection, select(table_of(t.GENERATION)), row.dataset, about.keys),
        key=lambda known: known.first,
    )
    rows = tuple(
        TableGeneration(
            known.generation,
            places[bytes(known.dataset)].place,
            known.format,
            *_times(known.first, known.last, known.deleted),
        )
        for known in found
    )
    return Answer(rows, complete_until(connection, now), subject_limits(connection, table=about, now=now))


def branches(connection: Connection, table: str | Dataset, *, now: datetime | None = None) -> Answer[RecordedBranch]:
    """Return all branches of a table that were created, by name; those that were dropped, too."""
    about = resolve_table(connection, table)
    row = table_of(t.BRANCH).c
    created = _creations(connection, about.keys)
    found = sorted(
        select_by_keys(connection, select(table_of(t.BRANCH)), row.dataset, about.keys),
        key=lambda known: (known.branch, known.last),
    )
    rows = tuple(
        RecordedBranch(
            known.branch,
            known.from_tag,
            known.from_snapshot,
            time_of(created.get((bytes(known.dataset), known.branch), 0)),
            known.generation or None,
            time_of(known.deleted) if known.deleted >= known.last else None,
        )
        for known in found
    )
    return Answer(rows, complete_until(connection, now), subject_limits(connection, table=about, now=now))


def _creations(connection: Connection, datasets: Collection[bytes]) -> dict[tuple[bytes, str], int]:
    """Return when each branch was created last: a row of it has the first time alone."""
    row, found = table_of(t.MODIFICATION).c, dict[tuple[bytes, str], int]()
    chosen = select(row.dataset, row.detail, row.time).where(row.kind == "CreateBranch", row.effect == "APPLIED")
    for change in select_by_keys(connection, chosen, row.dataset, datasets):
        key = (bytes(change.dataset), str(json.loads(change.detail).get("branch")))
        found[key] = max(found.get(key, 0), change.time)
    return found


def _times(first: int, last: int, deleted: int) -> tuple[datetime | None, datetime | None, datetime | None]:
    """One that was only ever taken away has neither first nor last."""
    return time_of(first), time_of(last), time_of(deleted) if deleted >= last else None
