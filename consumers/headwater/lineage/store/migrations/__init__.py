"""The versions of the store's tables, oldest first; each has a script beside this file, which Alembic runs.

Nothing here needs Alembic: a store is made from the tables as they are declared, and marked with the newest version.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple


class Version(NamedTuple):
    """A version of the tables, and which code can work on them."""

    name: str
    least: str
    """What code has to know at least to work on this one: where something was only added that is what the version
    before asked for, and where something was taken away the version that no longer used it."""


@dataclass(frozen=True)
class History:
    """Versions, and where their scripts are."""

    versions: tuple[Version, ...]
    scripts: Path

    @property
    def newest(self) -> Version:
        return self.versions[-1]

    def knows(self, name: str) -> bool:
        return any(version.name == name for version in self.versions)

    def can_use(self, least: str) -> bool:
        """Whether this code works on tables that ask for so much."""
        return self.knows(least)


HISTORY: Final = History((Version("0001", least="0001"),), Path(__file__).parent)
