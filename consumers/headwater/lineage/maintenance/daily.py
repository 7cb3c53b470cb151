"""Daily maintenance of a store by a running writer: creates PostgreSQL's partitions of the next months, refreshes the
statistics that it doesn't refresh by itself, and deletes the timelines and marks of writers that are long gone.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Final

from sqlalchemy import Engine
from typing_extensions import Self

from headwater.errors import HeadwaterError
from headwater.lineage.bulk.marks import delete_marks_before
from headwater.lineage.bulk.timeline import delete_instants_before
from headwater.lineage.maintenance.aging import remove_old
from headwater.lineage.maintenance.partitions import (
    CreatedPartition,
    drop_empty_partitions,
    make_partitions,
    refresh_statistics,
)
from headwater.lineage.sql.errors import StoreRightsError, translate_errors

_LOG: Final = logging.getLogger(__name__)
_DAY: Final = 86_400.0
INSTANT_RETENTION_DAYS: Final = 30
"""A writer that stored nothing for this long doesn't come back."""
_CLOSING_SECONDS: Final = 5.0


class StoreMaintenance:
    """Runs on a thread while its `with` block runs. A failure is logged once, and retried the next day."""

    def __init__(self, engines: Iterable[Engine], every: float = _DAY, keep_seconds: float | None = None) -> None:
        """`keep_seconds` is for how long records of runs are kept; None for ever."""
        self._engines = tuple(engines)
        self._keep_seconds = keep_seconds
        self._every = every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headwater-maintenance", daemon=True)
        self._said: set[str] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(_CLOSING_SECONDS)

    def _run(self) -> None:
        while not self._stop.is_set():
            for engine in self._engines:
                self._maintain(engine)
            self._stop.wait(self._every)

    def _maintain(self, engine: Engine) -> None:
        try:
            made, forgotten = maintain_store(engine)
            if self._keep_seconds is not None:
                self._remove_old(engine, self._keep_seconds)
        except HeadwaterError as e:
            self._say(e)
            return
        for partition in made:
            _LOG.info("made the partition %s, and moved %d rows into it", partition.partition, partition.moved)
        if forgotten:
            _LOG.info("forgot %d instants of writers that are long dead", forgotten)

    @staticmethod
    def _remove_old(engine: Engine, keep_seconds: float) -> None:
        horizon = time.time() - keep_seconds
        gone = remove_old(engine, int(horizon * 1_000_000))
        dropped = drop_empty_partitions(engine, datetime.fromtimestamp(horizon, timezone.utc))
        if gone or dropped:
            _LOG.info("removed old records of runs", extra={"headwater": {**gone, "empty_partitions": len(dropped)}})

    def _say(self, error: HeadwaterError) -> None:
        if str(error) not in self._said:
            self._said.add(str(error))
            advice = "; somebody who may has to run `headwater store maintain` once a month"
            _LOG.warning("maintenance: %s%s", error, advice if isinstance(error, StoreRightsError) else "")


def maintain_store(engine: Engine) -> tuple[list[CreatedPartition], int]:
    """Maintain a store. Return the new partitions, and how many instants were deleted."""
    with translate_errors(), engine.begin() as connection:
        horizon = int((time.time() - INSTANT_RETENTION_DAYS * _DAY) * 1_000_000)
        forgotten = delete_instants_before(connection, horizon)
        delete_marks_before(connection, horizon)
    created = make_partitions(engine)
    refresh_statistics(engine)
    return created, forgotten
