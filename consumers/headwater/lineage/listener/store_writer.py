"""Writes batches into the store. It runs on a thread of its own, because a database can be slow.

Records of a spool become rows here. Records that can't be stored become dead letters with all their bytes.

Connections whose server doesn't answer any more are aborted from another thread, and the waiting thread gets an error.
A server that does answer ends long statements by its own timeout.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Engine, event

from headwater.errors import HeadwaterError, TransientError
from headwater.events.clock import micros_of
from headwater.events.envelope import Event
from headwater.lineage.bulk import (
    BusPartition,
    DeadLetter,
    DeadLetterReason,
    EventRows,
    IngestProgress,
    MergeResult,
    WriteBatch,
)
from headwater.lineage.bulk.dead_letters import DIRECT_SOURCE
from headwater.lineage.listener.config import JdbcConfig
from headwater.lineage.mapping import map_event
from headwater.lineage.sql import errors as t
from headwater.lineage.store import Store, open_store
from headwater.lineage.store.options import StoreOptions
from headwater.spi import EventRecord, RecordError

_LIMITS: Final = {
    "postgresql": "SET statement_timeout TO {ms}",
    "mysql": "SET SESSION innodb_lock_wait_timeout = {seconds}",
    "sqlite": "PRAGMA busy_timeout = {ms}",
}


class ConnectionAborter:
    """Knows the open connections of an engine, and can abort them."""

    def __init__(self, engine: Engine, timeout: float) -> None:
        self._lock = threading.Lock()
        self._open: dict[int, Any] = {}
        limit = _LIMITS[engine.dialect.name].format(ms=round(timeout * 1_000), seconds=max(1, round(timeout)))
        event.listen(engine, "connect", lambda connection, _: self._on_connect(connection, limit))
        event.listen(engine, "close", lambda connection, _: self._on_close(connection))
        event.listen(engine, "invalidate", lambda connection, _, __: self._on_close(connection))
        engine.dispose()  # connections that were made before know nothing of this

    def abort_all(self) -> None:
        """Abort all open connections."""
        with self._lock:
            connections = list(self._open.values())
        for connection in connections:
            _abort(connection)

    def _on_connect(self, connection: Any, limit: str) -> None:
        with self._lock:
            self._open[id(connection)] = connection
        _execute(connection, limit)

    def _on_close(self, connection: Any) -> None:
        with self._lock:
            self._open.pop(id(connection), None)


def _execute(connection: Any, statement: str) -> None:
    """Execute a statement outside a transaction, so that a rollback doesn't revert it."""
    before = getattr(connection, "autocommit", None)
    if isinstance(before, bool):  # psycopg's; of the others it is a method, or means something else
        connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute(statement)
    cursor.close()
    if isinstance(before, bool):
        connection.autocommit = before


def _abort(connection: Any) -> None:
    """Shut down the socket. Closing the connection itself isn't safe while another thread uses it."""
    with suppress(OSError, AttributeError):
        if hasattr(connection, "interrupt"):  # SQLite
            connection.interrupt()
        elif hasattr(connection, "pgconn"):
            with socket.socket(fileno=os.dup(connection.pgconn.socket)) as own:
                own.shutdown(socket.SHUT_RDWR)
        else:
            connection._sock.shutdown(socket.SHUT_RDWR)  # noqa: SLF001 - there is no other way to it


_NOWHERE: Final = BusPartition("", "")


@dataclass
class DecodedRecords:
    """The rows and dead letters of a batch."""

    events: list[EventRows] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    until: dict[UUID, int] = field(default_factory=dict)
    """The time of each producer's last event."""

    @property
    def ingests(self) -> list[IngestProgress]:
        return [
            IngestProgress(DIRECT_SOURCE, _NOWHERE, until, producer=producer) for producer, until in self.until.items()
        ]


def decode_records(records: Iterable[EventRecord]) -> DecodedRecords:
    reading = DecodedRecords()
    for record in records:
        _read(record, reading)
    return reading


def _read(record: EventRecord, reading: DecodedRecords) -> None:
    try:
        _understand(record, reading)
    except HeadwaterError as e:  # it isn't what was written, or never was an event
        reading.dead_letters.append(to_dead_letter(record, DeadLetterReason.UNDECODABLE, str(e)))
    except (ValueError, TypeError, KeyError) as e:
        words = f"it can't be mapped to rows: {type(e).__name__}: {e}"
        reading.dead_letters.append(to_dead_letter(record, DeadLetterReason.INVALID, words))


def _understand(record: EventRecord, reading: DecodedRecords) -> None:
    """Map one record. An event of a later version is stored as far as it is understood, and is also kept as a dead
    letter for a version that knows it."""
    found = record.event
    event = found if isinstance(found, Event) else found.known
    if event is not None:
        rows = tuple(map_event(event))
        reading.events.append(EventRows(rows, _refused_letter(record)))
        reading.until[event.producer] = max(micros_of(event.time), reading.until.get(event.producer, 0))
    if not isinstance(found, Event):
        words = "a later version of headwater wrote it: retry it with that version"
        reading.dead_letters.append(to_dead_letter(record, DeadLetterReason.UNKNOWN, words))


def _refused_letter(record: EventRecord) -> Callable[[str], DeadLetter]:
    return partial(to_dead_letter, record, DeadLetterReason.REFUSED)


def to_dead_letter(record: EventRecord, reason: DeadLetterReason, words: str) -> DeadLetter:
    try:
        event, kind = record.event_id, record.kind
    except RecordError:
        event, kind = None, None
    # What doesn't say whose it is, is known by its content.
    where = _NOWHERE if event else BusPartition("", blake2b(record.data, digest_size=16).hexdigest())
    return DeadLetter(
        reason=reason,
        error=words,
        source=DIRECT_SOURCE,
        partition=where,
        position=event.sequence if event else record.position,
        data=record.data,
        key=record.key,
        headers=tuple(record.headers),
        event=event,
        kind=kind,
    )


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
