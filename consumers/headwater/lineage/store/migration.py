"""Migrates a store to this version. Only this module needs Alembic."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import Connection, Engine, update

from headwater.errors import ConfigurationError
from headwater.lineage.sql.errors import StoreSchemaError
from headwater.lineage.sql.locking import exclusive_transaction
from headwater.lineage.store.migrations import MigrationHistory
from headwater.lineage.store.schema_version import VERSION, SchemaState, inspect_schema, read_version
from headwater.plugins import extra_command

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory


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
