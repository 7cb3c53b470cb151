"""Bringing a store from an older version to this one: the one place that needs Alembic."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import Connection, Engine, update

from headwater.errors import ConfigurationError
from headwater.lineage.sql.troubles import StoreSchemaError
from headwater.lineage.store.locking import alone
from headwater.lineage.store.migrations import History
from headwater.lineage.store.versions import VERSION, Standing, found_in, version_in

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory


def migrate(engine: Engine, history: History, *, to: str | None = None) -> list[str]:
    """The versions that were reached, one after the other. On PostgreSQL and SQLite all of it or nothing; MySQL keeps
    what a step did before it failed, and a step that is begun again does the rest."""
    if find_spec("alembic") is None:
        raise ConfigurationError("an older store is brought to this version by Alembic: pip install 'headwater[store]'")
    with alone(engine) as connection:
        found = found_in(connection, history)
        _refuse_going_back(found.version, to, history)
        if found.standing is not Standing.OLDER:
            return []
        return upgrade(connection, history, to or history.newest.name)


def _refuse_going_back(version: str | None, to: str | None, history: History) -> None:
    names = [each.name for each in history.versions]
    if to is None or version is None:
        return
    if to not in names:
        raise StoreSchemaError(f"there is no version {to}: there is {', '.join(names)}")
    if version not in names or names.index(to) < names.index(version):
        raise StoreSchemaError(
            f"the store is at {version}, and is never brought back to {to}: what newer tables hold would be lost. "
            "Older code works on newer tables as long as nothing that it needs was taken away; else restore a backup"
        )


def upgrade(connection: Connection, history: History, to: str) -> list[str]:
    """In a transaction of the caller's, in which nobody else does it. Tables and the mark must be there, or neither."""
    from alembic.operations import Operations  # noqa: PLC0415 - an extra
    from alembic.runtime.migration import MigrationContext  # noqa: PLC0415

    script = scripts(history)
    least = {each.name: each.least for each in history.versions}
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
    now = version_in(connection)
    if now is None or now.name != to:
        raise StoreSchemaError(f"the scripts end at {now and now.name}, and not at {to}: headwater isn't whole here")
    return reached


def scripts(history: History) -> ScriptDirectory:
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - an extra

    return ScriptDirectory(str(history.scripts.parent), version_locations=[str(history.scripts)])
