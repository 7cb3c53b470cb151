"""All tables, as they are declared.

A new store is created from the declared tables and marked with the newest version, so this script runs only where
Alembic starts from nothing. The steps of later scripts do nothing there, as what they add or remove is as declared.
"""

from __future__ import annotations

from alembic import op

from headwater.lineage.sql import METADATA

revision = "0001"
down_revision = None


def upgrade() -> None:
    METADATA.create_all(op.get_bind())
