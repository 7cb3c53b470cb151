"""What versions have to go with: versions of other tables, a cut, a data version of a group, or a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias

from headwater.errors import ConfigurationError
from headwater.versions.cuts import Cut, DataVersion

At: TypeAlias = str | Sequence[str] | Mapping[str, int] | Cut | DataVersion | datetime | None
"""`"lake.ods.orders@20"` or several of these, `{"lake.ods.orders": 20}`, a cut, a data version, or a time after which
nothing is considered."""


class FixedVersion(NamedTuple):
    """A version of a table that others have to go with."""

    table: str
    snapshot: int | None
    """None if the name has it."""
    generation: str | None = None


def fixed_versions(at: At) -> tuple[list[FixedVersion], datetime | None]:
    """Return the versions that `at` names, and the time."""
    if at is None or isinstance(at, datetime):
        return [], at
    if isinstance(at, DataVersion):
        at = at.cut
    if isinstance(at, Cut):
        return [
            FixedVersion(name, version.snapshot, version.generation) for name, version in at.snapshots.items()
        ], None
    if isinstance(at, Mapping):
        return [FixedVersion(name, snapshot) for name, snapshot in at.items()], None
    named = [at] if isinstance(at, str) else list(at)
    for text in named:
        if "@" not in text:
            raise ConfigurationError(f"{text!r} names no version: write TABLE@NUMBER, such as lake.ods.orders@20")
    return [FixedVersion(table, None) for table in named], None
