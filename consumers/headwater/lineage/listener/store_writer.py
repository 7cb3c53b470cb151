"""Writes batches into the store. It runs on a thread of its own, because a database can be slow."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from headwater.errors import HeadwaterError, TransientError
from headwater.lineage.bulk import MergeResult, WriteBatch
from headwater.lineage.listener.aborting import ConnectionAborter
from headwater.lineage.listener.config import JdbcConfig
from headwater.lineage.listener.records import decode_records
from headwater.lineage.sql import errors as t
from headwater.lineage.store import Store, open_store
from headwater.lineage.store.options import StoreOptions
from headwater.spi import EventRecord

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
"""The word by which each kind of error is counted."""


class StoreWriter:
    """The store of one listener, opened by the first batch. One thread at a time writes; any thread may abort and
    close."""

    def __init__(self, config: JdbcConfig, options: StoreOptions, trouble: Callable[[str, str], None]) -> None:
        self._config = config
        self._options = options
        self._trouble = trouble
        self._store: Store | None = None
        self._aborter: ConnectionAborter | None = None
        self._lock = threading.Lock()
        self._is_closed = False
        self.began: float | None = None
        """When the batch that is being written was taken up."""

    def write(self, records: Sequence[EventRecord]) -> None:
        """Write all records, or keep them as dead letters in the store. Raises only TransientErrors: whatever is wrong
        with a database, somebody may repair it while the job runs."""
        self.began = time.monotonic()
        try:
            store = self._open()
            reading = decode_records(records)
            merged = store.bulk.merge_events(
                reading.events, WriteBatch(dead_letters=reading.dead_letters, ingests=reading.ingests)
            )
        except HeadwaterError as e:
            cause = next((word for kind, word in _CAUSES if isinstance(e, kind)), "store")
            self._trouble(cause, str(e))
            raise TransientError(str(e)) from e
        finally:
            self.began = None
            self._close_if_requested()
        self._report_refused(merged, len(reading.dead_letters))

    def abort(self) -> None:
        """Abort the connections, so that a waiting thread gets an error."""
        if self._aborter is not None:
            self._aborter.abort_all()

    def close(self) -> None:
        """Close the store. A running batch is aborted and closes the store itself."""
        self._is_closed = True
        if self.began is None:
            self._close_if_requested()
        else:
            self.abort()

    def _open(self) -> Store:
        if self._store is None:
            store = open_store(self._options, create=self._config.create)
            self._aborter = ConnectionAborter(store.engine, self._config.timeout)
            self._store = store
        return self._store

    def _close_if_requested(self) -> None:
        with self._lock:
            store = self._store if self._is_closed else None
            if store is not None:
                self._store = None
        if store is not None:
            store.close()

    def _report_refused(self, merged: MergeResult, others: int) -> None:
        number = len(merged.refused) + others
        if number:
            last = f": {merged.refused[-1].error}" if merged.refused else ""
            words = f"{number} event(s) couldn't be stored and are kept as dead letters in the store{last}"
            self._trouble(REFUSED, words)
            _LOG.debug("%s", words)
