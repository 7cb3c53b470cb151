"""The rows of answers about snapshots, and the answer type of all lineage questions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TypeVar
from uuid import UUID

from headwater.lineage.questions.answers import Answer
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.traversal.context import Basis

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class DatasetVersion:
    """A version of a dataset, as far as it is known."""

    dataset: Dataset | None
    """None if only the name is known, or if the source is opaque."""
    name: str
    """The name that the commit used."""
    snapshot: int | None = None
    version: str | None = None
    """The version as text, for systems without snapshot numbers (offsets), or the position within a snapshot at which a
    stream stopped."""
    generation: str | None = None
    branch: str | None = None
    opaque: str | None = None

    @cached_property
    def label(self) -> str:
        """What a person calls it, by its current name."""
        name = self.name if self.dataset is None or not self.dataset.known_as else self.dataset.label
        branch = f"[{self.branch}]" if self.branch else ""
        number = self.version if self.snapshot is None else str(self.snapshot)
        return f"{name}{branch}@{number}" if number is not None else f"{name}{branch}"


@dataclass(frozen=True)
class SnapshotEdge:
    """A commit wrote one version from another."""

    depth: int
    """How many commits from the start, beginning with 1."""
    target: DatasetVersion
    source: DatasetVersion
    mode: str
    """STATE: the source at that version. CHANGES: what came after `since`, up to and including that version."""
    since: int | None
    since_version: str | None
    kind: str
    """The commit's kind: APPEND, MERGE …."""
    job: str | None
    parent_job: str | None
    run: UUID | None
    barrier: int
    at: datetime
    format: str | None = None
    """The target's format. Iceberg's snapshot ids have no order."""
    parent: int | None = None
    """The snapshot that the target was committed on."""
    restarts: bool = False
    """Whether the commit replaced everything that was in the table."""


@dataclass(frozen=True)
class VersionRange:
    """Versions of a dataset from the oldest to the newest, in the order in which they were read or written."""

    dataset: Dataset | None
    name: str
    first: int | None = None
    last: int | None = None
    since: int | None = None
    """For changes, the version after which they began."""
    count: int = 1
    """How many different versions."""
    generation: str | None = None
    branch: str | None = None
    version: str | None = None
    """The newest version as text, where versions have no numbers."""
    opaque: str | None = None

    @cached_property
    def label(self) -> str:
        name = self.name if self.dataset is None or not self.dataset.known_as else self.dataset.label
        branch = f"[{self.branch}]" if self.branch else ""
        return f"{name}{branch}{self._numbers()}"

    def _numbers(self) -> str:
        if self.last is None:
            return f"@{self.version}" if self.version is not None else ""
        if self.since is not None:
            return f"@({self.since}..{self.last}]"
        return f"@{self.last}" if self.first == self.last else f"@{self.first}..{self.last}"


@dataclass(frozen=True)
class StateEdge:
    """Versions of a table were made from versions of another: several commits, folded."""

    depth: int
    target: VersionRange
    source: VersionRange
    modes: tuple[str, ...]
    commits: int
    jobs: tuple[str, ...]
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True)
class LineageAnswer(Answer[T_co]):
    """An answer that says what was asked."""

    of: str = ""
    """What was asked about."""
    direction: str = "upstream"
    basis: Basis | None = None
    """Which meaning of "made from" it uses; None for questions about tables, where both are the same."""
    note: str = ""
    """A hint for people, such as that the snapshot is a compaction."""
