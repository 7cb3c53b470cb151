"""The rows of answers about snapshots, and the answer type of all lineage questions.

Limits of an answer that no traversal meets: gaps, changes with unknown effect, lineage that is switched off.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property
from typing import Any, Final, TypeVar
from uuid import UUID

from sqlalchemy import Connection, case, literal, null, select, union_all

from headwater.lineage.questions.answers import Answer, LimitReason
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.traversal.context import Basis
from headwater.lineage.questions.traversal.limits import LimitCollector
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import OFF, SWITCHES
from headwater.lineage.sql.key_lookup import is_among, keys_for
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.tombstones import is_off_first

_AT_ONCE: Final = 5_000


def add_known_limits(
    connection: Connection, datasets: Mapping[bytes, Dataset], runs: Collection[bytes | None], limits: LimitCollector
) -> None:
    """Add these limits for the datasets and runs of an answer."""
    keys, of_runs = list(datasets), [run for run in runs if run is not None]
    for start in range(0, max(len(keys), len(of_runs), 1), _AT_ONCE):
        end = start + _AT_ONCE
        for limit in _select_limits(connection, keys[start:end], of_runs[start:end]):
            label = None if limit.dataset is None else datasets[bytes(limit.dataset)].label
            if limit.what == "gap":
                about = label or (f"job {limit.job}" if limit.job else "a run")
                limits.add(LimitReason.GAP, about, ": ".join(filter(None, (limit.reason, limit.detail))))
            elif limit.what == "effect":
                detail = f"whether {limit.reason} took effect isn't known; it isn't applied"
                limits.add(LimitReason.UNKNOWN_EFFECT, label or "?", detail)
            elif any(known.partition(".")[0] == limit.job for one in datasets.values() for known in one.known_as):
                limits.add(
                    LimitReason.OMITTED, f"catalog {limit.job}", f"its option {limit.reason} is false{limit.detail}"
                )


def _select_limits(connection: Connection, datasets: Sequence[bytes], runs: Sequence[bytes]) -> list[Any]:
    """Select gaps, changes with unknown effect and disabled options in one statement."""
    dialect = connection.dialect.name
    given = {"datasets": keys_for(dialect, datasets), "runs": keys_for(dialect, runs)}
    return list(connection.execute(_limits_of(dialect), given))


@cache
def _limits_of(dialect: str) -> Any:
    gap, change, option = (table_of(kind).c for kind in (t.GAP, t.MODIFICATION, t.CATALOG_OPTION))
    nothing = null()
    ofs = select(literal("gap").label("what"), gap.dataset, gap.job, gap.reason, gap.detail)
    by_run = ofs.where(gap.dataset.is_(None), is_among(dialect, gap.run, "runs"))
    effects = select(literal("effect"), change.dataset, nothing, change.kind, nothing)
    effects = effects.where(change.effect != "APPLIED", is_among(dialect, change.dataset, "datasets"))
    holds = case((is_off_first(option), ""), else_=" for some driver, and true was declared first")
    off = select(literal("option"), nothing, option.catalog, option.name, holds)
    off = off.where(option.name.in_(SWITCHES), option.value == OFF)
    return union_all(ofs.where(is_among(dialect, gap.dataset, "datasets")), effects, off, by_run)


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
