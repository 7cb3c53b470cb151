"""A store, ready to be written or asked."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType

from sqlalchemy import Engine
from typing_extensions import Self

from headwater.lineage.bulk import DatabaseBulkMeta, Work
from headwater.lineage.rows import Row
from headwater.lineage.sql.troubles import StoreRightsError, StoreSchemaError, troubles
from headwater.lineage.store.creating import create as create_in
from headwater.lineage.store.engines import engine_for
from headwater.lineage.store.files import check_file
from headwater.lineage.store.migrating import migrate
from headwater.lineage.store.migrations import HISTORY, History
from headwater.lineage.store.options import StoreOptions, Target
from headwater.lineage.store.partitions import make_ahead
from headwater.lineage.store.versions import Found, Standing, found_in
from headwater.lineage.store.views import make_views_if_allowed


class Store:
    """For any thread. What `merge` was given is visible to everybody when it comes back."""

    def __init__(self, engine: Engine, target: Target) -> None:
        self.engine = engine
        self.target = target
        self.bulk = DatabaseBulkMeta(engine, target.words)

    def merge(self, rows: Iterable[Row]) -> int:
        """All of them or none; how many of different keys."""
        return self.bulk.merge(Work(tuple(rows))).rows

    def close(self) -> None:
        self.engine.dispose()

    def __repr__(self) -> str:
        return f"Store({self.target.words})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()


def open_store(
    url: str | StoreOptions, *, readonly: bool = False, create: bool = True, history: History = HISTORY
) -> Store:
    """With the tables that this code knows: made where there are none, and brought to this version where they are
    older, if this user may. `create=False` does neither, and readers never do. Raises what `troubles` has, each with
    what to do about it."""
    options = url if isinstance(url, StoreOptions) else StoreOptions.at(url)
    target = options.target
    check_file(target, readonly=readonly, create=create)
    engine = engine_for(target, readonly=readonly)
    try:
        with troubles(target.words):
            _make_ready(engine, target, history, may_change=create and not readonly)
        if create and not readonly:
            make_ahead(engine)
            make_views_if_allowed(engine, target)
    except BaseException:
        engine.dispose()
        raise
    return Store(engine, target)


def _make_ready(engine: Engine, target: Target, history: History, *, may_change: bool) -> None:
    with engine.connect() as connection:
        found = found_in(connection, history)
    if found.standing is Standing.NEWER:
        raise StoreSchemaError(_newer(target, found, history))
    if found.standing is Standing.CURRENT:
        return
    if not may_change:
        raise StoreSchemaError(_missing(target, found))
    try:
        with troubles(target.words):
            _change(engine, history, found)
    except StoreRightsError as e:
        raise StoreRightsError(f"{_missing(target, found)} ({e})") from e


def _change(engine: Engine, history: History, found: Found) -> None:
    if found.standing is Standing.OLDER:
        migrate(engine, history)
    else:
        create_in(engine, history)


def _newer(target: Target, found: Found, history: History) -> str:
    return (
        f"the store in {target.words} is at version {found.version}, and this headwater knows it up to "
        f"{history.newest.name}: a newer headwater has changed it; install that one here too"
    )


def _missing(target: Target, found: Found) -> str:
    if found.standing is Standing.OLDER:
        return (
            f"the store in {target.words} is at version {found.version}, older than this headwater: somebody who may "
            f"change its tables has to run `headwater store migrate --store {target.words}`"
        )
    return (
        f"there is no store in {target.words} yet: somebody who may make tables there has to run "
        f"`headwater store init --store {target.words}`"
    )
