"""Aligned queries: what a user's program makes, runs and stops."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from headwater.errors import ConfigurationError, TransientError
from headwater.lineage.store import Store, StoreOptions, open_store
from headwater.versions.aligned.batch import OverwritePolicy
from headwater.versions.aligned.checkpoints import Barrier, Checkpoint
from headwater.versions.aligned.loop import BarrierFunction, JobLoop, QuerySettings
from headwater.versions.aligned.proposals import StoreWatch
from headwater.versions.aligned.repetition import StandIn
from headwater.versions.cuts import check_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG: Final = logging.getLogger(__name__)
_POLICIES: Final = ("fail", "full", "ignore")


def aligned_query(
    group: str,
    sources: Mapping[str, str],
    *,
    name: str,
    checkpoint: str,
    store: str | StoreOptions | Store | None = None,
    start: str | int = "newest",
    snapshots_per_barrier: int = 1,
    overwrites: OverwritePolicy | Mapping[str, OverwritePolicy] = "fail",
    spark: SparkSession | None = None,
) -> AlignedQuery:
    """Return a job that reads its sources at the snapshots that all jobs of its group read.

        query = aligned_query("shop", {"orders": "lake.db.orders"}, name="revenue", checkpoint="/data/revenue")
        query.run(step)

    `sources` gives each table a name for the function. `start` counts for a new checkpoint only: `"newest"`, the number
    of a data version, or `"lake.db.b@11"` to begin after what that contains. `store` is the lineage store, the one that
    HEADWATER_STORE names unless you give another.
    """
    policies: dict[str, OverwritePolicy] = {
        source: overwrites if isinstance(overwrites, str) else overwrites.get(source, "fail") for source in sources
    }
    if not sources:
        raise ConfigurationError("an aligned query needs sources: name them, as in {'orders': 'lake.db.orders'}")
    if strange := sorted(set(policies.values()) - set(_POLICIES)):
        raise ConfigurationError(f"overwrites can be {', '.join(_POLICIES)}, and not {strange[0]!r}")
    if snapshots_per_barrier < 1:
        raise ConfigurationError(f"snapshots_per_barrier has to be 1 or more, and not {snapshots_per_barrier}")
    settings = QuerySettings(
        group=check_name("group", group),
        name=check_name("job", name),
        sources=dict(sources),
        checkpoint=Checkpoint(checkpoint),
        start=start,
        snapshots_per_barrier=snapshots_per_barrier,
        overwrites=policies,
    )
    return AlignedQuery(settings, store, spark)


class AlignedQuery:
    """An aligned job. `aligned_query` makes one."""

    stand_in: ClassVar[StandIn | None] = None
    """Where a validation or a correction has set it, queries of this process leave their barriers to it, and touch
    neither their group nor their checkpoint."""

    def __init__(
        self, settings: QuerySettings, store: str | StoreOptions | Store | None, spark: SparkSession | None
    ) -> None:
        self.settings: Final = settings
        self._store: Final = store
        self._spark: Final = spark
        self._stopped: Final = threading.Event()
        self._woken: Final = threading.Event()

    def stop(self) -> None:
        """Let `run` return after the barrier that it works on. Any thread may call it."""
        self._stopped.set()
        self._woken.set()

    def run(
        self,
        step: BarrierFunction,
        *,
        trigger: Literal["available-now", "continuous"] = "available-now",
        poll_seconds: float = 5.0,
    ) -> int:
        """Run the function on each data version, and return on how many. `available-now` returns when nothing is new;
        `continuous` goes on until `stop` is called. Then it looks at the tables every `poll_seconds`, and at once when
        the store learns of a commit to them."""
        if trigger not in ("available-now", "continuous"):
            raise ConfigurationError(f"a trigger is available-now or continuous, and not {trigger!r}")
        if self.stand_in is not None:
            return self.stand_in.play(self.settings, self._session(), step, self._opened)
        with ExitStack() as held:
            store = self._opened(held)
            loop = JobLoop(self.settings, self._session(), store)
            loop.begin(held)
            if trigger == "available-now":
                return self._run_available(loop, step)
            tables = self.settings.sources.values()
            held.enter_context(StoreWatch(store, self.settings.group, tables, self._woken, poll_seconds))
            return self._run_continuous(loop, step, poll_seconds)

    def _run_available(self, loop: JobLoop, step: BarrierFunction) -> int:
        count = 0
        while not self._stopped.is_set() and (barrier := loop.next_barrier()) is not None:
            if not loop.play(step, barrier):
                break
            count += 1
        return count

    def _run_continuous(self, loop: JobLoop, step: BarrierFunction, poll_seconds: float) -> int:
        count = 0
        while not self._stopped.is_set():
            self._woken.clear()  # before it looks, so that what comes while it looks wakes it
            if (barrier := self._look(loop)) is not None and loop.play(step, barrier):
                count += 1
            elif not self._stopped.is_set():
                self._woken.wait(poll_seconds)
        return count

    def _look(self, loop: JobLoop) -> Barrier | None:
        """Return the next barrier. While a store is away there is none, and nothing is lost by waiting for it."""
        try:
            return loop.next_barrier()
        except TransientError as e:
            _LOG.warning("the job %s waits: %s", self.settings.name, e)
            return None

    def _session(self) -> SparkSession:
        from pyspark.sql import SparkSession as Sessions  # noqa: PLC0415 - an extra

        found = self._spark or Sessions.getActiveSession()
        if found is None:
            raise ConfigurationError("there is no Spark session here: make one first, or give it as spark=")
        if not hasattr(found, "_jvm"):
            raise ConfigurationError(
                "an aligned query needs a classic Spark session: one of Spark Connect has no JVM here"
            )
        return found

    def _opened(self, held: ExitStack) -> Store:
        if isinstance(self._store, Store):
            return self._store
        where = self._store or os.environ.get("HEADWATER_STORE")
        if where is None:
            raise ConfigurationError("which store? Give it as store=, or in the variable HEADWATER_STORE")
        options = where if isinstance(where, StoreOptions) else StoreOptions.from_environment(os.environ, where)
        return held.enter_context(open_store(options))
