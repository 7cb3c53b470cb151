"""The instants of this writer as the store has them: REQUESTED before anything of one is written, COMPLETED in one
transaction with its offsets.

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

from headwater.consumers.writer.offsets import bus_work
from headwater.consumers.writer.processes.instants import Instant
from headwater.consumers.writer.record_reader import RecordReader
from headwater.lineage.bulk import (
    BulkLineageMeta,
    EpochChanged,
    InstantState,
    MergeResult,
    WriteBatch,
    WriterInstant,
    WriterMarks,
)

_LOG: Final = logging.getLogger(__name__)
_LEFT_AFTER: Final = 900.0
"""Seconds after which an unfinished instant of another host is given up. If it is completed after all, it counts as
completed."""


class Timeline:
    """Writes instants, for one thread at a time."""

    def __init__(self, meta: BulkLineageMeta, reader: RecordReader, kind: str, group: str, marks: WriterMarks) -> None:
        self.writer: Final = uuid4()
        self._meta = meta
        self._reader = reader
        self._kind = kind
        self._group = group
        self._mark = marks.new()
        self._host, self._process = socket.gethostname(), os.getpid()

    def give_up_orphans(self) -> list[WriterInstant]:
        """Mark the unfinished instants of this writer and of dead writers of its group as given up, and log them."""
        left = [each for each in self._meta.unfinished_instants() if self._is_abandoned(each)]
        for each in left:
            _LOG.warning(
                "a writer ended before its instant %d was completed (%s): offsets were not moved, and what it was "
                "writing is read again",
                each.number,
                each.detail,
            )
        if left:
            self._store(WriteBatch(instants=[replace(each, state=InstantState.GIVEN_UP, detail=None) for each in left]))
        return left

    def open(self, instant: Instant) -> int:
        """Open an instant. Return the store's epoch before any row of it is written."""
        detail = _to_detail(
            group=self._group,
            host=self._host,
            process=self._process,
            at=time.time(),
            events=len(instant.batch.records),
            next={f"{each.topic}/{each.number}": [at] for each, at in instant.batch.next.items()},
        )
        self._store(WriteBatch(instants=[WriterInstant(self.writer, instant.number, detail=detail)]))
        return self._meta.epoch()

    def complete(self, instant: Instant) -> MergeResult:
        """Complete an instant with its offsets and dead letters.

        If a row was refused, or rows were omitted that may be gone, or something was deleted since the instant was
        opened, its events are written again in the same transaction. That finds refused events and omits nothing.
        """
        work = bus_work(instant.batch, self._group, self._kind, self._reader.topic)
        done = [WriterInstant(self.writer, instant.number, InstantState.COMPLETED)] if instant.batch.records else []
        work = replace(work, dead_letters=instant.dead_letters, instants=done, mark=self._mark)
        try:
            if not instant.must_rewrite:
                return self._meta.merge(replace(work, epoch=instant.epoch))
        except EpochChanged:
            instant.must_rewrite = True
        return self._meta.merge_events(list(self._reader.event_rows(instant.batch.records)), work)

    def _store(self, work: WriteBatch) -> None:
        self._meta.merge(replace(work, mark=self._mark))

    def _is_abandoned(self, instant: WriterInstant) -> bool:
        words = _words(instant.detail)
        if instant.writer == self.writer:
            return True
        if words.get("group") != self._group:
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


def _to_detail(**words: object) -> str:
    """Return a value of the timeline's column `detail`."""
    return json.dumps(words, separators=(",", ":"), sort_keys=True)


def _words(detail: str | None) -> dict[str, Any]:
    with suppress(ValueError):
        found = json.loads(detail or "")
        return found if isinstance(found, dict) else {}
    return {}
