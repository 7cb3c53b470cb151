"""Creates a store and its PIP-5 compatible views, brings an older one to this version, and knows that by a mark in it.

Only migrating needs Alembic, which is an extra.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, cast

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    MetaData,
    String,
    Table,
    delete,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.exc import OperationalError

from headwater.errors import ConfigurationError
from headwater.lineage.maintenance.partitions import make_first
from headwater.lineage.sql import METADATA
from headwater.lineage.sql.errors import (
    StoreAccessError,
    StoreBusyError,
    StoreRightsError,
    StoreSchemaError,
    translate_errors,
)
from headwater.lineage.sql.locking import WRITES, exclusive_transaction
from headwater.lineage.sql.pip5_views import are_views_current, create_views
from headwater.lineage.store.engines.sqlite import BUSY_SECONDS
from headwater.lineage.store.migrations import MigrationHistory, SchemaVersion
from headwater.lineage.store.options import StoreAddress
from headwater.plugins import extra_command

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory


_LOG: Final = logging.getLogger(__name__)


def make_views(engine: Engine, target: StoreAddress, catalog: str | None = None) -> None:
    """Create or update the views. `catalog` is the catalog that they show by default."""
    with translate_errors(target.words):
        with engine.connect() as connection:
            if catalog is None and are_views_current(connection, target.database):
                return
        with engine.connect().execution_options(**{WRITES: True}) as connection, connection.begin():
            create_views(connection, target.database, catalog)


def has_views(engine: Engine, target: StoreAddress) -> bool:
    """Return whether the views exist as this version defines them, as far as this user can see."""
    try:
        with translate_errors(target.words), engine.connect() as connection:
            return are_views_current(connection, target.database)
    except (StoreRightsError, StoreAccessError):
        return False


def make_views_if_allowed(engine: Engine, target: StoreAddress) -> None:
    """Create the views if the user may. A store works without them."""
    try:
        make_views(engine, target)
    except (StoreRightsError, StoreAccessError, StoreBusyError) as e:  # MySQL has no word for one may not look
        _LOG.info("the views in %s weren't made: %s", target.database, e)


VERSION: Final = Table(
    "schema_version",
    MetaData(),
    Column("version_num", String(32), primary_key=True),
    Column("least", String(32), nullable=False, server_default=""),
    mysql_engine="InnoDB",
    mysql_charset="utf8mb4",
)
"""One row. Alembic uses `version_num`; `least` is the oldest version that code must know to work on these tables."""


class SchemaState(Enum):
    """How a database's tables compare with those that this version needs."""

    EMPTY = "EMPTY"
    """There are no tables."""
    UNMARKED = "UNMARKED"
    """There are tables of our names, but no version mark."""
    OLDER = "OLDER"
    CURRENT = "CURRENT"
    """The version that this code knows, or a newer one that it can still work on."""
    NEWER = "NEWER"
    """A newer version that removed something this code needs."""


@dataclass(frozen=True)
class SchemaStatus:
    standing: SchemaState
    version: str | None = None
    tables: frozenset[str] = frozenset()
    """The existing tables that have our names."""


def inspect_schema(connection: Connection, history: MigrationHistory) -> SchemaStatus:
    version = read_version(connection)
    if version is not None:
        return SchemaStatus(_compare_version(version, history), version.name)
    ours = {*METADATA.tables}
    tables = frozenset(ours & {*inspect(connection).get_table_names()})
    return SchemaStatus(SchemaState.UNMARKED if tables else SchemaState.EMPTY, None, tables)


def read_version(connection: Connection) -> SchemaVersion | None:
    if not inspect(connection).has_table(VERSION.name):
        return None
    row = connection.execute(select(VERSION.c.version_num, VERSION.c.least)).one_or_none()
    return None if row is None else SchemaVersion(row.version_num, row.least or row.version_num)


def write_version(connection: Connection, version: SchemaVersion) -> None:
    VERSION.create(connection, checkfirst=True)
    connection.execute(delete(VERSION))
    connection.execute(insert(VERSION).values(version_num=version.name, least=version.least))


def _compare_version(version: SchemaVersion, history: MigrationHistory) -> SchemaState:
    if version.name == history.newest.name:
        return SchemaState.CURRENT
    if history.knows(version.name):
        return SchemaState.OLDER
    return SchemaState.CURRENT if history.can_use(version.least) else SchemaState.NEWER


def migrate(engine: Engine, history: MigrationHistory, *, to: str | None = None) -> list[str]:
    """Run the scripts and return the versions reached. PostgreSQL and SQLite run all of them or none. MySQL keeps
    completed steps; starting again does the rest."""
    if find_spec("alembic") is None:
        raise ConfigurationError(f"an older store is brought to this version by Alembic: {extra_command('store')}")
    with exclusive_transaction(engine) as connection:
        found = inspect_schema(connection, history)
        _refuse_going_back(found.version, to, history)
        if found.standing is not SchemaState.OLDER:
            return []
        return upgrade(connection, history, to or history.newest.name)


def _refuse_going_back(version: str | None, to: str | None, history: MigrationHistory) -> None:
    names = [version.name for version in history.versions]
    if to is None or version is None:
        return
    if to not in names:
        raise StoreSchemaError(f"there is no version {to}: there is {', '.join(names)}")
    if version not in names or names.index(to) < names.index(version):
        raise StoreSchemaError(
            f"the store is at {version}, and is never brought back to {to}: what newer tables hold would be lost. "
            "Older code works on newer tables as long as nothing that it needs was taken away; else restore a backup"
        )


def upgrade(connection: Connection, history: MigrationHistory, to: str) -> list[str]:
    """Run the scripts in the caller's exclusive transaction. Tables and version mark must both exist, or neither."""
    from alembic.operations import Operations  # noqa: PLC0415 - an extra
    from alembic.runtime.migration import MigrationContext  # noqa: PLC0415

    script = scripts(history)
    least = {version.name: version.least for version in history.versions}
    reached: list[str] = []

    def steps(revision: Any, _: Any) -> Any:
        return cast("Any", script)._upgrade_revs(to, revision)  # noqa: SLF001 - as Alembic's own commands do

    def note(step: Any, **_: Any) -> None:
        name = str(step.up_revision_id)
        connection.execute(update(VERSION).values(least=least[name]))
        reached.append(name)

    options = {"fn": steps, "script": script, "version_table": VERSION.name, "on_version_apply": (note,)}
    context = MigrationContext.configure(connection, opts=options)
    with Operations.context(context):
        context.run_migrations()
    now = read_version(connection)
    if now is None or now.name != to:
        raise StoreSchemaError(f"the scripts end at {now and now.name}, and not at {to}: headwater isn't whole here")
    return reached


def scripts(history: MigrationHistory) -> ScriptDirectory:
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - an extra

    return ScriptDirectory(str(history.scripts.parent), version_locations=[str(history.scripts)])


_PAUSE: Final = 0.05


def create(engine: Engine, history: MigrationHistory) -> None:
    """Create everything or nothing. If several processes do this at once, one creates the store. On MySQL an
    interrupted creation is continued by the next one."""
    if engine.dialect.name == "sqlite":
        _let_readers_read(engine)
    with exclusive_transaction(engine) as connection:
        if engine.dialect.name == "postgresql":
            make_schema(connection)
        found = inspect_schema(connection, history)
        if found.standing is SchemaState.UNMARKED:
            _check_owner(connection, found)
        elif found.standing is not SchemaState.EMPTY:
            return  # another one was quicker
        METADATA.create_all(connection)
        if engine.dialect.name == "postgresql":
            make_first(connection)
        write_version(connection, history.newest)


def make_schema(connection: Connection) -> None:
    """Create the schema that `search_path` names, if it doesn't exist. CREATE SCHEMA IF NOT EXISTS would need the right
    even if it does."""
    schema = connection.execute(text("SHOW search_path")).scalar_one()
    if not inspect(connection).has_schema(schema):
        connection.execute(text(f"CREATE SCHEMA {schema}"))


def _check_owner(connection: Connection, found: SchemaStatus) -> None:
    """Tables without a version mark are an unfinished store, or somebody else's tables of the same names."""
    inspector = inspect(connection)
    for name in sorted(found.tables):
        there = {column["name"] for column in inspector.get_columns(name)}
        if there != {column.name for column in METADATA.tables[name].columns}:
            raise StoreSchemaError(
                f"there is a table {name} that isn't headwater's: give the store a database of its own in jdbc.url"
            )


def _let_readers_read(engine: Engine) -> None:
    """Switch the SQLite file to WAL mode, permanently. Two processes that try at once fail immediately, whatever their
    busy timeout, so retry."""
    deadline = time.monotonic() + BUSY_SECONDS
    while not _is_set(engine, is_last=time.monotonic() > deadline):
        time.sleep(_PAUSE)


def _is_set(engine: Engine, *, is_last: bool) -> bool:
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
    except OperationalError as e:
        if "locked" not in str(e.orig) or is_last:
            raise
        return False
    return True
