"""What a store needs once a day, by whoever is running anyway: PostgreSQL's partitions of the months to come, and that
the timelines of writers that are long dead are forgotten."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from typing import Final

from sqlalchemy import Engine
from typing_extensions import Self

from headwater.errors import HeadwaterError
from headwater.lineage.bulk.timeline import forget_before
from headwater.lineage.sql.troubles import StoreRightsError, troubles
from headwater.lineage.store.partitions import Made, make_partitions

_LOG: Final = logging.getLogger(__name__)
_DAY: Final = 86_400.0
FORGOTTEN_DAYS: Final = 30
"""A writer that has told nothing for so long doesn't come back as the same."""
_CLOSING_SECONDS: Final = 5.0


class Upkeep:
    """On a thread of its own, from `with` to its end. What can't be done is said once, and tried the next day."""

    def __init__(self, engines: Iterable[Engine], every: float = _DAY) -> None:
        self._engines = tuple(engines)
        self._every = every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headwater-upkeep", daemon=True)
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
                self._kept(engine)
            self._stop.wait(self._every)

    def _kept(self, engine: Engine) -> None:
        try:
            made, forgotten = keep(engine)
        except HeadwaterError as e:
            self._say(e)
            return
        for each in made:
            _LOG.info("made the partition %s, and moved %d rows into it", each.partition, each.moved)
        if forgotten:
            _LOG.info("forgot %d instants of writers that are long dead", forgotten)

    def _say(self, error: HeadwaterError) -> None:
        if str(error) not in self._said:
            self._said.add(str(error))
            advice = "; somebody who may has to run `headwater store upkeep` once a month"
            _LOG.warning("upkeep: %s%s", error, advice if isinstance(error, StoreRightsError) else "")


def keep(engine: Engine) -> tuple[list[Made], int]:
    """What was made, and how many instants are forgotten. Whatever the one raises, the other was done."""
    with troubles(), engine.begin() as connection:
        forgotten = forget_before(connection, int((time.time() - FORGOTTEN_DAYS * _DAY) * 1_000_000))
    return make_partitions(engine), forgotten
