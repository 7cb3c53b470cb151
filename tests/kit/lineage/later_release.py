"""A store of a later release."""

from __future__ import annotations

import shutil
from pathlib import Path
from textwrap import dedent

from headwater.lineage.store.migrations import HISTORY, MigrationHistory, SchemaVersion

SECOND = """
    import sqlalchemy as sa
    from alembic import op
    from headwater.lineage.store.migration_steps import add_column, create_index, create_table

    revision, down_revision = "0002", "0001"

    def upgrade():
        create_table("notes", sa.Column("id", sa.Integer, primary_key=True), sa.Column("note", sa.String(20)))
        add_column("commits", sa.Column("weekday", sa.SmallInteger))
        BREAK
        create_index("commits_weekday", "commits", ["weekday"])
        op.execute("UPDATE commits SET weekday = 7 WHERE weekday IS NULL")
"""


THIRD = """
    from headwater.lineage.store.migration_steps import drop_column, drop_table

    revision, down_revision = "0003", "0002"

    def upgrade():
        drop_column("commits", "operation")
        drop_table("notes")
"""


SECOND_VERSION, THIRD_VERSION = SchemaVersion("0002", least="0001"), SchemaVersion("0003", least="0002")


def script(directory: Path, name: str, content: str, broken: str = "pass") -> None:
    (directory / name).write_text(dedent(content).replace("BREAK", broken))


def later_in(tmp_path: Path) -> MigrationHistory:
    """The versions there are, and two more."""
    directory = tmp_path / "scripts"
    shutil.copytree(HISTORY.scripts, directory, ignore=shutil.ignore_patterns("__*"))
    script(directory, "v0002_more.py", SECOND)
    script(directory, "v0003_less.py", THIRD)
    return MigrationHistory((*HISTORY.versions, SECOND_VERSION, THIRD_VERSION), directory)
