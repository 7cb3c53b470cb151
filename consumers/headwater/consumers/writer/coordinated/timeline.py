"""The instants of this process as the store has them: REQUESTED before anything is written, INFLIGHT when the instant
is closed, COMPLETED in one transaction with the offsets.

An unfinished instant of a dead writer means that some of its rows may be stored and its offsets aren't. Nothing has to
be undone: the next writer reads the same events and writes the same rows.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final
from uuid import uuid4

from headwater.consumers.writer.coordinated.connections import StoreConnection
from headwater.consumers.writer.coordinated.instants import OpenInstant, to_detail
from headwater.consumers.writer.record_reader import RecordReader
from headwater.lineage.bulk import EpochChanged, InstantState, MergeResult, WriteBatch, WriterInstant

_LOG: Final = logging.getLogger(__name__)
_LEFT_AFTER: Final = 900.0
"""Seconds after which an unfinished instant of another host is given up. If it is completed after all, it counts as
completed."""


class Timeline:
    """Writes instants, for one thread at a time."""

    def __init__(self, connection: StoreConnection, reader: RecordReader, kind: str, group: str) -> None:
        self.writer: Final = uuid4()
        self._connection = connection
        self._reader = reader
        self._kind = kind
        self._group = group
        self._host, self._process = socket.gethostname(), os.getpid()

    def give_up_orphans(self) -> list[WriterInstant]:
        """Mark the unfinished instants of dead writers of this group as given up, and log them."""
        left = [each for each in self._connection.unfinished() if self._is_abandoned(each)]
        for each in left:
            _LOG.warning(
                "a writer ended before its instant %d was completed (%s): offsets were not moved, and what it was "
                "writing is read again",
                each.number,
                each.detail,
            )
        if left:
            self._connection.merge(
                WriteBatch(instants=[replace(each, state=InstantState.GIVEN_UP, detail=None) for each in left])
            )
        return left

    def open(self, number: int) -> int:
        """Open an instant. Return the store's epoch before any row of it is written."""
        self._store_state(number, InstantState.REQUESTED, **self._self(), at=time.time())
        return self._connection.epoch()

    def close(self, instant: OpenInstant) -> None:
        events = len(instant.records)
        self._store_state(
            instant.number, InstantState.INFLIGHT, **self._self(), at=time.time(), events=events, next=instant.ranges()
        )

    def complete(self, instant: OpenInstant) -> MergeResult:
        """Complete an instant with its offsets.

        If a row was refused, or rows were omitted that may be gone, its events are written again in the same
        transaction. That finds the refused events and omits nothing.
        """
        done = WriterInstant(self.writer, instant.number, InstantState.COMPLETED)
        work = replace(instant.work(self._group, self._kind, self._reader.topic), instants=(done,))
        try:
            if not instant.must_rewrite:
                return self._connection.merge(replace(work, epoch=instant.epoch))
        except EpochChanged:
            instant.must_rewrite = True
        rows = list(self._reader.event_rows(instant.records))
        return self._connection.merge_events(rows, replace(work, rows=instant.gaps))

    def _store_state(self, number: int, state: InstantState, **words: object) -> None:
        self._connection.merge(WriteBatch(instants=[WriterInstant(self.writer, number, state, to_detail(**words))]))

    def _self(self) -> dict[str, object]:
        return {"group": self._group, "host": self._host, "process": self._process}

    def _is_abandoned(self, instant: WriterInstant) -> bool:
        words = _words(instant.detail)
        if words.get("group") != self._group or instant.writer == self.writer:
            return False
        if words.get("host") == self._host:
            return not self._lives(words.get("process"))
        return time.time() - float(words.get("at", 0)) > _LEFT_AFTER

    def _lives(self, process: object) -> bool:
        """Return whether a process of this host is alive. A container can reuse our own process id, so that doesn't
        count."""
        if not isinstance(process, int) or process == self._process:
            return False
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True
        return True


def _words(detail: str | None) -> dict[str, Any]:
    with suppress(ValueError):
        found = json.loads(detail or "")
        return found if isinstance(found, dict) else {}
    return {}
