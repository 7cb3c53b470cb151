"""What answers about snapshots are made of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from headwater.lineage.questions.answers import Answer
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.walking.walk import Basis

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Version:
    """A dataset at a version, as far as that is known."""

    dataset: Dataset | None
    """None where it has no identity: it is known by its name alone, or opaque."""
    name: str
    """What the commit called it."""
    snapshot: int | None = None
    version: str | None = None
    """The text of a version, in systems that count otherwise (offsets), or where within a snapshot a stream stopped."""
    life: str | None = None
    branch: str | None = None
    opaque: str | None = None

    @property
    def label(self) -> str:
        """What a person calls it: by its name of today."""
        name = self.name if self.dataset is None or not self.dataset.known_as else self.dataset.label
        branch = f"[{self.branch}]" if self.branch else ""
        number = self.version if self.snapshot is None else str(self.snapshot)
        return f"{name}{branch}@{number}" if number is not None else f"{name}{branch}"


@dataclass(frozen=True)
class SnapshotEdge:
    """A commit made one version from another."""

    depth: int
    """So many commits from where the question began, from 1."""
    target: Version
    source: Version
    mode: str
    """STATE: the source as it was at that version. CHANGES: what came behind `since`, up to and with that version."""
    since: int | None
    since_version: str | None
    kind: str
    """The commit's kind: APPEND, MERGE …"""
    job: str | None
    parent_job: str | None
    run: UUID | None
    barrier: int
    at: datetime
    format: str | None = None
    """The target's. Iceberg's snapshots are numbers without an order."""
    parent: int | None = None
    """What the target was made on."""
    restarts: bool = False
    """Nothing that was in the target's table before is in it any more."""


@dataclass(frozen=True)
class Span:
    """Versions of a dataset, from the oldest to the newest, in the order in which they were read or made."""

    dataset: Dataset | None
    name: str
    first: int | None = None
    last: int | None = None
    since: int | None = None
    """Of changes: behind which version they began."""
    count: int = 1
    """How many different versions."""
    life: str | None = None
    branch: str | None = None
    version: str | None = None
    """The newest version's text, where versions have no numbers."""
    opaque: str | None = None

    @property
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
    """What is in versions of a table was made from versions of another: several commits, folded."""

    depth: int
    target: Span
    source: Span
    modes: tuple[str, ...]
    commits: int
    jobs: tuple[str, ...]
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True)
class Lineage(Answer[T_co]):
    """An answer that names what it is the answer to."""

    of: str = ""
    """What was asked about."""
    direction: str = "upstream"
    basis: Basis | None = None
    """Which answer to "made from" it is; None for questions about tables, which it makes no difference to."""
    note: str = ""
    """What a person should know of what was asked about: that it was a compaction, say."""
