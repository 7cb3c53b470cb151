"""The versions of the store's tables, oldest first. Alembic runs the script of each, which is beside this file.

Nothing here needs Alembic: a new store is created from the declared tables and marked with the newest version.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple


class SchemaVersion(NamedTuple):
    """A version of the tables."""

    name: str
    least: str
    """The oldest version that code must know to work on this one. Where columns were only added it is the version
    before; where something was removed, the version that stopped using it."""


@dataclass(frozen=True)
class MigrationHistory:
    """The versions, and where their scripts are."""

    versions: tuple[SchemaVersion, ...]
    scripts: Path

    @property
    def newest(self) -> SchemaVersion:
        return self.versions[-1]

    def knows(self, name: str) -> bool:
        return any(version.name == name for version in self.versions)

    def can_use(self, least: str) -> bool:
        """Return whether this code can work on tables that need at least this version."""
        return self.knows(least)


HISTORY: Final = MigrationHistory((SchemaVersion("0001", least="0001"),), Path(__file__).parent)
