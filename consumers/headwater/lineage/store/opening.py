"""Opens a store for writing or reading."""

from __future__ import annotations

from sqlalchemy import Engine

from headwater.errors import ConfigurationError
from headwater.lineage.lake.address import LakeAddress
from headwater.lineage.lake.formats import SqlSession
from headwater.lineage.maintenance.partitions import make_ahead
from headwater.lineage.sql.errors import StoreRightsError, StoreSchemaError, translate_errors
from headwater.lineage.store.creation import SchemaState, SchemaStatus, inspect_schema, make_views_if_allowed, migrate
from headwater.lineage.store.creation import create as create_in
from headwater.lineage.store.engines import engine_for
from headwater.lineage.store.engines.sqlite import prepare_file
from headwater.lineage.store.migrations import HISTORY, MigrationHistory
from headwater.lineage.store.options import StoreAddress, StoreOptions
from headwater.lineage.store.store import Store


def open_store(
    url: str | StoreOptions,
    *,
    readonly: bool = False,
    create: bool = True,
    views: bool = True,
    history: MigrationHistory = HISTORY,
    spark: SqlSession | None = None,
) -> Store:
    """Open a store whose tables have the version that this code needs.

    Creates the tables of a new store and migrates an older one, if this user may. With `create=False` or
    `readonly=True` it does neither. With `views=False` it leaves the PIP-5 views as they are. Raises the errors of
    `headwater.lineage.sql.errors`; each says what to do. A lake store (`iceberg:CATALOG.NAMESPACE`) is opened only to
    read it, by `spark` if a session is given.
    """
    options = url if isinstance(url, StoreOptions) else StoreOptions.at(url)
    lake = options.lake
    if lake is not None:
        return _open_lake(lake, spark, readonly=readonly)
    if spark is not None:
        raise ConfigurationError("a Spark session answers for a lake store alone: leave `spark` out for a database")
    target = options.target
    prepare_file(target, readonly=readonly, create=create)
    engine = engine_for(target, readonly=readonly)
    try:
        with translate_errors(target.words):
            _make_ready(engine, target, history, may_change=create and not readonly)
        if create and not readonly:
            make_ahead(engine)
            if views:
                make_views_if_allowed(engine, target)
    except BaseException:
        engine.dispose()
        raise
    return Store(engine, target)


def _open_lake(address: LakeAddress, spark: SqlSession | None, *, readonly: bool) -> Store:
    if not readonly:
        raise ConfigurationError(
            f"{address.words} is a lake store, which Spark alone writes: fill it by `headwater pipeline run`, keep it "
            "by `headwater lake`, and name a database for anything else that writes"
        )
    if spark is not None:
        from headwater.lineage.lake.spark_reading import open_lake_by_spark  # noqa: PLC0415 - only a lake needs it

        return open_lake_by_spark(address, spark)
    from headwater.lineage.lake.reading import open_lake  # noqa: PLC0415 - only a lake needs it

    return open_lake(address)


def _make_ready(engine: Engine, target: StoreAddress, history: MigrationHistory, *, may_change: bool) -> None:
    with engine.connect() as connection:
        found = inspect_schema(connection, history)
    if found.standing is SchemaState.NEWER:
        raise StoreSchemaError(_newer(target, found, history))
    if found.standing is SchemaState.CURRENT:
        return
    if not may_change:
        raise StoreSchemaError(_migration_advice(target, found))
    try:
        with translate_errors(target.words):
            _change(engine, history, found)
    except StoreRightsError as e:
        raise StoreRightsError(f"{_migration_advice(target, found)} ({e})") from e


def _change(engine: Engine, history: MigrationHistory, found: SchemaStatus) -> None:
    if found.standing is SchemaState.OLDER:
        migrate(engine, history)
    else:
        create_in(engine, history)


def _newer(target: StoreAddress, found: SchemaStatus, history: MigrationHistory) -> str:
    return (
        f"the store in {target.words} is at version {found.version}, and this headwater knows it up to "
        f"{history.newest.name}: a newer headwater has changed it; install that one here too"
    )


def _migration_advice(target: StoreAddress, found: SchemaStatus) -> str:
    if found.standing is SchemaState.OLDER:
        return (
            f"the store in {target.words} is at version {found.version}, older than this headwater: somebody who may "
            f"change its tables has to run `headwater store migrate --store {target.words}`"
        )
    return (
        f"there is no store in {target.words} yet: somebody who may make tables there has to run "
        f"`headwater store init --store {target.words}`"
    )
