"""How a store stands, also one that can't be opened."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy import func, select, table

from headwater.lineage.sql.tables import rest_of
from headwater.lineage.sql.troubles import troubles
from headwater.lineage.store.engines import engine_for
from headwater.lineage.store.files import check_file
from headwater.lineage.store.migrations import HISTORY, History
from headwater.lineage.store.options import StoreOptions
from headwater.lineage.store.partitions import PARTITIONED
from headwater.lineage.store.versions import Standing, found_in
from headwater.lineage.store.views import are_there


@dataclass(frozen=True)
class Status:
    where: str
    standing: Standing
    version: str | None
    """Of its tables."""
    known: str
    """The newest that this code knows."""
    views: str
    """The database of the seed-shaped views."""
    has_views: bool = False
    in_rest: int | None = None
    """Rows that no month's partition has; None where there are no partitions."""


def status_of(options: StoreOptions, history: History = HISTORY) -> Status:
    target = options.target
    check_file(target, readonly=True, create=False)
    engine = engine_for(target, readonly=True)
    try:
        with troubles(target.words), engine.connect() as connection:
            found = found_in(connection, history)
            status = Status(target.words, found.standing, found.version, history.newest.name, target.database)
            if found.standing is not Standing.CURRENT:
                return status
            is_apart = engine.dialect.name == "postgresql"
            counts = [select(func.count()).select_from(table(rest_of(name))) for name in PARTITIONED if is_apart]
            rest = sum(connection.execute(each).scalar_one() for each in counts) if is_apart else None
        return replace(status, has_views=are_there(engine, target), in_rest=rest)
    finally:
        engine.dispose()
