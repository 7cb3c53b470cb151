"""Plays a committed barrier of a job again: the same snapshots, with whatever the job's function is now."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from headwater.errors import ConfigurationError
from headwater.versions.aligned.batch import AlignedBatch
from headwater.versions.aligned.checkpoints import Barrier, JobStart
from headwater.versions.aligned.formats import TableLooker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.lineage.store import Store
    from headwater.versions.aligned.loop import BarrierFunction, QuerySettings


StoreOpener = Callable[[ExitStack], "Store"]
"""Opens the store of a query until the stack is closed."""


class StandIn(Protocol):
    """What plays barriers in place of the queries of a process."""

    def play(self, settings: QuerySettings, spark: SparkSession, step: BarrierFunction, open_store: StoreOpener) -> int:
        """Run the function of a query on the barriers that are to be played, and return on how many."""
        ...


@dataclass(frozen=True)
class CommittedBarrier:
    """A barrier that a job has committed, as its checkpoint has it."""

    start: JobStart
    barrier: Barrier


class BarrierRepetition:
    """One barrier, for the query of its job. Other queries do nothing."""

    def __init__(self, committed: CommittedBarrier) -> None:
        self._committed: Final = committed
        self.count = 0
        """How often the barrier was played."""

    def play(
        self,
        settings: QuerySettings,
        spark: SparkSession,
        step: BarrierFunction,
        open_store: StoreOpener,  # noqa: ARG002 - the checkpoint says all
    ) -> int:
        """Run the function of the job on the barrier, and return on how many; it writes without marks."""
        start, barrier = self._committed.start, self._committed.barrier
        if (settings.name, settings.group) != (start.job, start.group):
            return 0
        if strange := sorted(set(settings.sources.values()) - set(barrier.cut.snapshots)):
            raise ConfigurationError(
                f"data version {barrier.number} of the group {start.group} has no snapshot of {', '.join(strange)}: "
                "the job didn't read it then"
            )
        self.count += 1
        step(
            AlignedBatch(
                spark,
                TableLooker(spark),
                number=barrier.number,
                cut=barrier.cut,
                before=barrier.before,
                tables=settings.sources,
                overwrites=settings.overwrites,
                sinks=_PlainSinks(),
            )
        )
        return 1


class _PlainSinks:
    """Each write is made: where it goes to is decided elsewhere."""

    def write(self, sink: str, write: Callable[[], object], *, at_least_once: bool) -> bool:  # noqa: ARG002
        write()
        return True
