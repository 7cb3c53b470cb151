"""Batches into the store: what a listener has another thread do, because a database may take its time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from headwater.errors import HeadwaterError, TransientError
from headwater.lineage.bulk import Merged, Work
from headwater.lineage.listener.config import JdbcConfig
from headwater.lineage.listener.cutting import Cutter
from headwater.lineage.listener.records import read
from headwater.lineage.sql import troubles as t
from headwater.lineage.store import Store, open_store
from headwater.lineage.store.options import StoreOptions
from headwater.spi import Record

_LOG: Final = logging.getLogger(__name__)
REFUSED: Final = "refused"
_CAUSES: Final[tuple[tuple[type[HeadwaterError], str], ...]] = (
    (t.StoreUnreachableError, "unreachable"),
    (t.StoreBusyError, "busy"),
    (t.StoreFullError, "full"),
    (t.StoreAccessError, "access"),
    (t.StoreRightsError, "rights"),
    (t.StoreSchemaError, "schema"),
)
"""One word for each trouble, by which it is counted."""


class Writer:
    """The store of one listener, opened with the first batch. One thread at a time writes; any may cut and close."""

    def __init__(self, config: JdbcConfig, options: StoreOptions, trouble: Callable[[str, str], None]) -> None:
        self._config = config
        self._options = options
        self._trouble = trouble
        self._store: Store | None = None
        self._cutter: Cutter | None = None
        self._lock = threading.Lock()
        self._is_closed = False
        self.began: float | None = None
        """When the batch that is being written was taken up."""

    def write(self, records: Sequence[Record]) -> None:
        """All of them are in the store when it comes back, or kept there as dead letters. A TransientError otherwise:
        whatever is wrong with a database, somebody may mend it while the job runs."""
        self.began = time.monotonic()
        try:
            store = self._opened()
            reading = read(records)
            merged = store.bulk.merge_events(reading.told, Work(letters=reading.letters, ingests=reading.ingests))
        except HeadwaterError as e:
            cause = next((word for kind, word in _CAUSES if isinstance(e, kind)), "store")
            self._trouble(cause, str(e))
            raise TransientError(str(e)) from e
        finally:
            self.began = None
            self._let_go_if_closed()
        self._tell_kept(merged, len(reading.letters))

    def cut(self) -> None:
        """Whoever waits for the database is told that the connection is broken."""
        if self._cutter is not None:
            self._cutter.cut()

    def close(self) -> None:
        """What is being written is given up, and lets go of the store itself."""
        self._is_closed = True
        if self.began is None:
            self._let_go_if_closed()
        else:
            self.cut()

    def _opened(self) -> Store:
        if self._store is None:
            store = open_store(self._options, create=self._config.create)
            self._cutter = Cutter(store.engine, self._config.timeout)
            self._store = store
        return self._store

    def _let_go_if_closed(self) -> None:
        with self._lock:
            store = self._store if self._is_closed else None
            if store is not None:
                self._store = None
        if store is not None:
            store.close()

    def _tell_kept(self, merged: Merged, others: int) -> None:
        number = len(merged.refused) + others
        if number:
            last = f": {merged.refused[-1].words}" if merged.refused else ""
            words = f"{number} event(s) couldn't be stored and are kept as dead letters in the store{last}"
            self._trouble(REFUSED, words)
            _LOG.debug("%s", words)
