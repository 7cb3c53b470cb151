"""The first migration makes what is declared, until a release has it; then it is written out, and never changes."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import module_from_spec, spec_from_loader

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from packaging.version import Version
from sqlalchemy import Engine, create_engine

from headwater.lineage.sql import METADATA
from tools.migrations import FIRST, frozen_migration


def described(engine: Engine) -> list[str]:
    with engine.connect() as connection:
        query = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name"
        return [" ".join(str(row).split()) for row in connection.exec_driver_sql(query)]


def test_a_release_has_its_tables_written_out() -> None:
    """If this fails: `python -m tools.migrations --freeze`. Only then a change of a table without a script shows."""
    assert Version(version("headwater")).is_devrelease or "METADATA" not in FIRST.read_text()


def test_what_is_written_out_makes_what_is_declared() -> None:
    written, declared = create_engine("sqlite://"), create_engine("sqlite://")
    METADATA.create_all(declared)
    script = module_from_spec(spec_from_loader("frozen", None))  # type: ignore[arg-type]
    exec(compile(frozen_migration(), FIRST.name, "exec"), script.__dict__)  # noqa: S102 - it is our own
    with written.begin() as connection, Operations.context(MigrationContext.configure(connection)):
        script.upgrade()
    assert described(written) == described(declared)
