"""Who finds versions that belong together: an entry point of `headwater.version_finders`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

GROUP: Final = "headwater.version_finders"
"""The group of entry points that names factories of version finders."""


@dataclass(frozen=True)
class PinnedVersion:
    """A table, and the version at which it belongs with others."""

    name: str
    """As it was asked for."""
    version: str
    """What VERSION AS OF takes."""
    generation: str | None
    """Which table has these versions: one that was dropped and made again is another."""
    made_at: int | None
    """When the version was made, in microseconds."""
    steps_behind: int
    """How many versions there are after it."""


@dataclass(frozen=True)
class FoundVersions:
    """Versions of tables that belong together, and why there are none of some or all."""

    pins: tuple[PinnedVersion, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why not all tables are pinned. Empty if all are."""
    cut: tuple[str, ...] = ()
    """The versions of the tables upstream that all of them contain."""
    notes: tuple[str, ...] = ()
    """What isn't known of the lineage behind them, and doesn't touch the answer."""


class VersionFinder(Protocol):
    """Asked by several threads at a time. It may raise what it likes: what it raises is the reason then."""

    def find(self, tables: Sequence[str]) -> FoundVersions:
        """Return the newest versions of these tables, by their full names in Spark, that belong together."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class VersionFinderFactory(Protocol):
    def create(self, configuration: Mapping[str, str]) -> VersionFinder:
        """Return a finder for an application with this Spark configuration; a ConfigurationError if there can't be
        one."""
        ...
