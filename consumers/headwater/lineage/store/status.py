"""Reports the state of a store, even if it can't be opened."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import func, select, table

from headwater.events.clock import moment_of
from headwater.lineage.bulk.marks import last_set_back
from headwater.lineage.maintenance.partitions import PARTITIONED
from headwater.lineage.sql.errors import translate_errors
from headwater.lineage.sql.tables import default_partition
from headwater.lineage.store.engines import open_engine
from headwater.lineage.store.engines.sqlite import prepare_file
from headwater.lineage.store.migrations import HISTORY, MigrationHistory
from headwater.lineage.store.options import StoreOptions
from headwater.lineage.store.schema_version import SchemaState, inspect_schema
from headwater.lineage.store.views import has_views


@dataclass(frozen=True)
class StoreStatus:
    where: str
    standing: SchemaState
    version: str | None
    """The version of the tables."""
    known: str
    """The newest version that this code knows."""
    views: str
    """The database of the PIP-5 compatible views."""
    has_views: bool = False
    in_rest: int | None = None
    """How many rows are in default partitions; None if the database has no partitions."""
    set_back: datetime | None = None
    """When a writer last noticed that the database had lost its newest rows."""


def read_status(options: StoreOptions, history: MigrationHistory = HISTORY) -> StoreStatus:
    target = options.target
    prepare_file(target, readonly=True, create=False)
    with open_engine(target, readonly=True) as engine:
        with translate_errors(target.words), engine.connect() as connection:
            found = inspect_schema(connection, history)
            status = StoreStatus(target.words, found.standing, found.version, history.newest.name, target.database)
            if found.standing is not SchemaState.CURRENT:
                return status
            is_apart = engine.dialect.name == "postgresql"
            counts = [
                select(func.count()).select_from(table(default_partition(name))) for name in PARTITIONED if is_apart
            ]
            rest = sum(connection.execute(count).scalar_one() for count in counts) if is_apart else None
            noticed = last_set_back(connection)
        set_back = None if noticed is None else moment_of(noticed)
        return replace(status, has_views=has_views(engine, target), in_rest=rest, set_back=set_back)
