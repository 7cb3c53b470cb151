"""The plan of a correction: which tables are wrong, which jobs make them again, and what can't be corrected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from headwater.lineage.questions.answers import AnswerLimit
from headwater.lineage.questions.commit_facts import Amount, total

PhaseDisplay = Callable[[str, str, int, int], None]
"""Shows how far a phase is: its name, what is counted, how many are done, and of how many."""


class CorrectionMode(str, Enum):
    """How much is read again."""

    FULL = "full"
    """Tables downstream begin empty, and their jobs read the corrected state and what came after it."""
    INCREMENTAL = "incremental"
    """Tables downstream begin at their last right snapshots, and their jobs read what came after it."""


class TableVerdict(str, Enum):
    """What is known of a table's content now."""

    WRONG = "WRONG"
    RIGHT = "RIGHT"
    """It was wrong, and has been made anew since from what is right."""
    DROPPED = "DROPPED"
    """What was wrong was dropped."""
    UNKNOWN = "UNKNOWN"
    """It was wrong, and whether its newest snapshot is right isn't known."""


class MirrorKind(str, Enum):
    """Where a format lets a table be corrected, without copying its files."""

    BRANCH = "branch"
    CLONE = "shallow clone"


class JobKind(str, Enum):
    """What a job is, and so what has to be known to run it again."""

    ALIGNED = "aligned job"
    STREAM = "stream"
    BATCH = "batch job"


@dataclass(frozen=True, kw_only=True)
class PlannedTable:
    """A table that is, or was, made from what is wrong."""

    table: str
    format: str | None
    verdict: TableVerdict
    is_source: bool
    """Whether it is the table that the user corrects."""
    snapshots: tuple[int, ...]
    """Those that contain wrong rows, or may, the oldest first. Those of other branches aren't among them."""
    newest: int | None
    last_right: int | None
    """The snapshot before the wrong ones that its newest snapshot stands on; None if there is none, or none known."""
    mirror: MirrorKind | None
    starts_at: int | None
    """The snapshot at which the mirror begins; None if it begins empty."""
    made_from: tuple[str, ...]
    """The wrong tables that it was made from."""
    jobs: tuple[str, ...]
    """The jobs that make it again."""
    written: Amount
    """What the wrong commits wrote."""
    problems: tuple[str, ...] = ()
    """Why it can't be corrected."""
    notes: tuple[str, ...] = ()
    in_cycle: bool = False
    """Whether it is made from itself, by way of other tables or not."""

    @property
    def is_corrected(self) -> bool:
        return self.verdict is TableVerdict.WRONG and not self.problems

    @property
    def is_uncorrectable(self) -> bool:
        return self.verdict in {TableVerdict.WRONG, TableVerdict.UNKNOWN} and bool(self.problems)


@dataclass(frozen=True, kw_only=True)
class PlannedJob:
    """A job that made something from what is wrong."""

    job: str
    kind: JobKind
    group: str | None
    """The group of an aligned job."""
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    commits: int
    """How many of its commits are made again."""
    runs: int
    commands: tuple[str, ...]
    """How it is run again, as `correction.toml` says; each once, in this order."""
    read: Amount
    written: Amount
    last_duration: timedelta | None
    """How long its last run took that ended; None if none is known to have ended, and for what runs without an end."""
    checkpoint: str | None = None
    """Of a stream or an aligned job."""
    last_right_batch: int | None = None
    """The batch of the stream behind which it goes on; None if it isn't known."""
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Why what it made can't be made again."""
    is_needed: bool = True
    """Whether it makes any table that is corrected."""

    @property
    def lacks_command(self) -> bool:
        return self.is_needed and not self.commands


@dataclass(frozen=True, kw_only=True)
class CorrectionPlan:
    """What a correction makes, runs and switches, and what it can't."""

    source: str
    snapshot: int
    mode: CorrectionMode
    tables: tuple[PlannedTable, ...]
    """In the order in which they are corrected."""
    jobs: tuple[PlannedJob, ...]
    """In the order in which they run."""
    left_out: tuple[str, ...]
    """Wrong tables that weren't asked for. They stay wrong."""
    complete_until: datetime | None
    """Everything that was committed up to this time is included, but for the limits."""
    limits: tuple[AnswerLimit, ...]
    """What isn't known, so that more may be wrong than the plan says."""

    @property
    def corrected(self) -> tuple[PlannedTable, ...]:
        return tuple(table for table in self.tables if table.is_corrected)

    @property
    def uncorrectable(self) -> tuple[PlannedTable, ...]:
        return tuple(table for table in self.tables if table.is_uncorrectable)

    @property
    def already_right(self) -> tuple[PlannedTable, ...]:
        return tuple(table for table in self.tables if table.verdict in {TableVerdict.RIGHT, TableVerdict.DROPPED})

    @property
    def needed_jobs(self) -> tuple[PlannedJob, ...]:
        return tuple(job for job in self.jobs if job.is_needed)

    @property
    def is_whole(self) -> bool:
        """Whether everything that is known to be wrong can be corrected."""
        unknown = any(table.verdict is TableVerdict.UNKNOWN for table in self.tables)
        lacking = any(job.lacks_command for job in self.jobs)
        return not (self.uncorrectable or unknown or lacking or self.left_out)

    @property
    def read(self) -> Amount:
        return total(job.read for job in self.needed_jobs)

    @property
    def written(self) -> Amount:
        return total(job.written for job in self.needed_jobs)
