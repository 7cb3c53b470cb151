"""The plan of a roll-back: which tables go back to which snapshots, what each loses, and what that means for jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

from headwater.lineage.questions.answers import AnswerLimit
from headwater.lineage.questions.commit_facts import Amount, total
from headwater.versions.correction.model import JobKind

_NOTHING: Final = Amount()


class RollbackVerdict(str, Enum):
    """What becomes of a table."""

    BACK = "BACK"
    """It goes back to an earlier snapshot."""
    STAYS = "STAYS"
    """Its newest snapshot has nothing of what is rolled back."""
    LEFT = "LEFT"
    """It has something of what is rolled back, and wasn't asked for."""
    STUCK = "STUCK"
    """It has, or may have, something of what is rolled back, and can't go back."""


@dataclass(frozen=True, kw_only=True)
class RolledTable:
    """A table of a roll-back."""

    table: str
    format: str | None
    verdict: RollbackVerdict
    is_source: bool
    """Whether the user named it, or the data version has it; the others were made from these."""
    generation: str | None
    newest: int | None
    """The snapshot that it has to be at: else nothing is done to it."""
    target: int | None
    """The snapshot that it goes back to, or stays at."""
    commits: int = 0
    """How many of its commits are lost."""
    lost: Amount = _NOTHING
    """What those wrote."""
    unreported: int = 0
    """How many of them nobody reported."""
    jobs: tuple[str, ...] = ()
    """The jobs that made them."""
    problems: tuple[str, ...] = ()
    """Why it can't go back."""
    notes: tuple[str, ...] = ()

    @property
    def goes_back(self) -> bool:
        return self.verdict is RollbackVerdict.BACK


@dataclass(frozen=True, kw_only=True)
class RolledJob:
    """A job of whose commits some are lost."""

    job: str
    kind: JobKind
    writes: tuple[str, ...]
    """The tables that go back of those that it wrote."""
    commits: int
    """How many of its commits are lost."""
    group: str | None = None
    """The group of an aligned job."""
    checkpoint: str | None = None
    """Of a stream or an aligned job."""
    keeps: int | None = None
    """The last batch of a stream, or the last data version of an aligned job, of which nothing is lost. None if it
    isn't known, or if all is lost."""
    problems: tuple[str, ...] = ()
    """Why its checkpoint can't go back by itself."""
    notes: tuple[str, ...] = ()

    @property
    def moves(self) -> bool:
        """Whether the roll-back moves its checkpoint."""
        return self.kind is JobKind.ALIGNED and not self.problems


@dataclass(frozen=True, kw_only=True)
class RolledGroup:
    """A group of aligned jobs whose tables go back behind its newest data version."""

    group: str
    newest: int
    target: int
    """The newest data version that has nothing of what is rolled back; 0 if none."""


@dataclass(frozen=True, kw_only=True)
class RollbackPlan:
    """What a roll-back does, and what it can't."""

    asked: str
    """What was asked for: `lake.ods.orders@4`, `data version shop@7`."""
    source: str
    """The table that was named, or the first one of a data version."""
    snapshot: int
    is_chain: bool
    tables: tuple[RolledTable, ...]
    """In the order in which they go back: each behind what it was made from."""
    jobs: tuple[RolledJob, ...]
    groups: tuple[RolledGroup, ...]
    belong_together: bool | None
    """Whether the tables that stay or go back belong together then; None if it isn't known, or if there is one."""
    differences: tuple[str, ...]
    """Why they don't, or why that isn't known."""
    complete_until: datetime | None
    limits: tuple[AnswerLimit, ...]

    def of(self, verdict: RollbackVerdict) -> tuple[RolledTable, ...]:
        return tuple(table for table in self.tables if table.verdict is verdict)

    @property
    def going_back(self) -> tuple[RolledTable, ...]:
        return self.of(RollbackVerdict.BACK)

    @property
    def stuck(self) -> tuple[RolledTable, ...]:
        return self.of(RollbackVerdict.STUCK)

    @property
    def moving_jobs(self) -> tuple[RolledJob, ...]:
        return tuple(job for job in self.jobs if job.moves)

    @property
    def stuck_jobs(self) -> tuple[RolledJob, ...]:
        return tuple(job for job in self.jobs if job.problems)

    @property
    def lost(self) -> Amount:
        return total(table.lost for table in self.going_back)

    @property
    def is_whole(self) -> bool:
        """Whether everything that has something of what is rolled back goes back, too."""
        return not (self.stuck or self.stuck_jobs or self.of(RollbackVerdict.LEFT))
