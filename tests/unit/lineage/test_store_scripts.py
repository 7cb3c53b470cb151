"""The first migration is what is declared."""

from __future__ import annotations

from tools.migrations import FIRST, first_migration


def test_the_first_migration_is_what_is_declared() -> None:
    """If this fails, a table was changed: `make migrations` writes the script anew, as long as no release
    has it."""
    assert FIRST.read_text() == first_migration()
