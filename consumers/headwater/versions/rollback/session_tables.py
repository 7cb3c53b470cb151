"""The tables of a roll-back in a Spark session, and what the store is told of them."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from headwater.errors import ConfigurationError
from headwater.events.jobs import Committed
from headwater.events.names import JobName
from headwater.lineage.store import Store
from headwater.versions.branches.format_branches import FormatBranches, branches_of
from headwater.versions.branches.model import MainRollBack
from headwater.versions.branches.reporting import BranchEvents, store_report
from headwater.versions.step_journal import JournalStep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB: Final = JobName(name="headwater rollback")


class SessionTables:
    """The tables that a session knows. What is done to them is told to a store."""

    def __init__(self, spark: SparkSession, store: Store) -> None:
        self._spark: Final = spark
        self._report: Final = store_report(store)

    def open(self, name: str) -> FormatBranches:
        return branches_of(self._spark, name)

    def problem(self, name: str, snapshot: int) -> str | None:
        try:
            return self.open(name).unreadable(snapshot)
        except ConfigurationError as e:
            return str(e)

    def report(self, table: FormatBranches, moved: MainRollBack, step: JournalStep) -> None:
        """Tell of the commit that gave a table the rows of one of its snapshots. Its barrier is always the same for a
        step, so that one that is told twice is known once."""
        table.look()
        for event in BranchEvents(table).rolled_back(moved):
            assert isinstance(event, Committed)  # noqa: S101 - a roll-back is a commit
            self._report(event.model_copy(update={"job": JOB, "barrier": _barrier(step)}))


def _barrier(step: JournalStep) -> int:
    """Return a number for a step, by when it was begun: that is noted before it is done."""
    assert step.moved_at is not None  # noqa: S101 - the journal has it
    digest = sha256(f"{step.number} {step.subject}".encode()).digest()
    return (int(step.moved_at.timestamp() * 1000) << 20) + int.from_bytes(digest[:2], "big")
