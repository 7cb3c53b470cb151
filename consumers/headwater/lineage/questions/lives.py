"""Names and lives of a dataset: what it was called and when, and how often it was made anew."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from headwater.lineage.questions.about import limits_of, table_meant
from headwater.lineage.questions.answers import Answer
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset, described
from headwater.lineage.questions.gaps.missing import when
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.among import among
from headwater.lineage.sql.tables import table_of


@dataclass(frozen=True)
class Alias:
    """A name that a catalog had for it."""

    name: str
    place: str
    """Where the data was under this name."""
    first: datetime | None
    last: datetime | None
    """When it was told first and last."""
    ended: datetime | None
    """When the name was taken away; None where it holds."""


@dataclass(frozen=True)
class Lived:
    """A life: from when it was made to when it was dropped, with snapshot ids of its own."""

    life: str
    place: str
    format: str | None
    first: datetime | None
    last: datetime | None
    ended: datetime | None


def aliases(connection: Connection, table: str | Dataset, *, now: datetime | None = None) -> Answer[Alias]:
    """Under all identities that it had, in the order in which they were told first."""
    about = table_meant(connection, table)
    row, places = table_of(t.ALIAS).c, described(connection, about.keys)
    found = sorted(among(connection, select(table_of(t.ALIAS)), row.dataset, about.keys), key=lambda each: each.first)
    rows = tuple(
        Alias(
            ".".join(part for part in (each.catalog, each.database_name, each.table_name) if part),
            places[bytes(each.dataset)].place,
            *_times(each.first, each.last, each.deleted),
        )
        for each in found
    )
    return Answer(rows, complete_until(connection, now), limits_of(connection, table=about, now=now))


def lives(connection: Connection, table: str | Dataset, *, now: datetime | None = None) -> Answer[Lived]:
    """In the order in which they were told first."""
    about = table_meant(connection, table)
    row, places = table_of(t.LIFE).c, described(connection, about.keys)
    found = sorted(among(connection, select(table_of(t.LIFE)), row.dataset, about.keys), key=lambda each: each.first)
    rows = tuple(
        Lived(each.life, places[bytes(each.dataset)].place, each.format, *_times(each.first, each.last, each.deleted))
        for each in found
    )
    return Answer(rows, complete_until(connection, now), limits_of(connection, table=about, now=now))


def _times(first: int, last: int, deleted: int) -> tuple[datetime | None, datetime | None, datetime | None]:
    """One that was only ever taken away has neither first nor last."""
    return when(first), when(last), when(deleted) if deleted >= last else None
