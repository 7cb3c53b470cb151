"""`python -m tools.migrations --freeze`: writes the tables, as they are declared, out into the store's first migration.

That is done for the first release. From then on each change of a table is a migration of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from alembic.autogenerate import produce_migrations, render_python_code
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine

from headwater.lineage.sql import METADATA
from headwater.lineage.sql.tables import default_partition
from tools import environment

FIRST = Path(__file__).parents[1] / "consumers/headwater/lineage/store/migrations/v0001_all_tables.py"
_HEAD = '''"""All tables, as the first release has them. It never changes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql, postgresql

revision = "0001"
down_revision = None

_MYSQL_TEXT = mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin")
TEXT = (
    sa.Text()
    .with_variant(postgresql.TEXT(collation="C"), "postgresql")
    .with_variant(_MYSQL_TEXT, "mysql", "mariadb")
)


def _binary(size: int) -> sa.types.TypeEngine[bytes]:
    return sa.LargeBinary(size).with_variant(mysql.VARBINARY(size), "mysql", "mariadb")


def upgrade() -> None:  # noqa: PLR0915 - there are as many as there are
'''
_VARIANTS = r"(?:\.with_variant\((?:[^()]|\([^()]*\))*\))+"


def frozen_migration() -> str:
    """The text of a script that doesn't depend on what is declared later."""
    with create_engine("sqlite://").connect() as connection:
        context = MigrationContext.configure(connection)
        produced = produce_migrations(context, METADATA)
    if produced.upgrade_ops is None:
        raise RuntimeError("Alembic produced nothing")
    code = render_python_code(produced.upgrade_ops, migration_context=context)
    code = re.sub(r"^ *# ### .*$\n?", "", code, flags=re.MULTILINE)
    code = re.sub(rf"sa\.Text\(\){_VARIANTS}", "TEXT", code)
    code = re.sub(rf"sa\.LargeBinary\(length=(\d+)\){_VARIANTS}", r"_binary(\1)", code)
    return _formatted(f'{_HEAD}    {code.strip()}\n    if op.get_bind().dialect.name == "postgresql":\n{_rests()}')


def _rests() -> str:
    apart = [name for name, table in METADATA.tables.items() if table.dialect_options["postgresql"]["partition_by"]]
    return "".join(
        f'        op.execute("CREATE TABLE {default_partition(name)} PARTITION OF {name} DEFAULT")\n' for name in apart
    )


def _formatted(code: str) -> str:
    command = [str(environment.VENV / "bin/ruff"), "format", "--stdin-filename", str(FIRST), "-"]
    return str(subprocess.run(command, input=code, capture_output=True, text=True, check=True).stdout)


def main(arguments: list[str]) -> int:
    if arguments != ["--freeze"]:
        print(f"{FIRST.name} makes what is declared, so it is up to date; a release has it written out by --freeze")
        return 0
    FIRST.write_text(frozen_migration())
    print(f"wrote {FIRST.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
