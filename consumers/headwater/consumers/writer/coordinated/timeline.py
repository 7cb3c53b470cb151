"""The instants of this process, as the store keeps them: REQUESTED before anything of one is written, INFLIGHT when it
is closed, COMPLETED in one transaction with its offsets.

What a writer left unfinished means: some rows of its last instant may be in the store, and the offsets are before them.
Nothing has to be taken back, because whoever goes on there tells the same rows again.
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

from headwater.consumers.writer.coordinated.instants import Gathered, said
from headwater.consumers.writer.coordinated.lanes import Lane
from headwater.consumers.writer.reading import Reader
from headwater.lineage.bulk import EpochMoved, Instant, Merged, State, Work

_LOG: Final = logging.getLogger(__name__)
_LEFT_AFTER: Final = 900.0
"""Seconds after which an instant of a writer on another host is taken for left behind. If it is completed all the same,
that holds."""


class Timeline:
    """For one thread at a time."""

    def __init__(self, lane: Lane, reader: Reader, kind: str, group: str) -> None:
        self.writer: Final = uuid4()
        self._lane = lane
        self._reader = reader
        self._kind = kind
        self._group = group
        self._host, self._process = socket.gethostname(), os.getpid()

    def look_back(self) -> list[Instant]:
        """Those that a writer of this group left unfinished: told, and marked."""
        left = [each for each in self._lane.unfinished() if self._is_left(each)]
        for each in left:
            _LOG.warning(
                "a writer ended before its instant %d was completed (%s): offsets were not moved, and what it was "
                "writing is read again",
                each.number,
                each.detail,
            )
        if left:
            self._lane.merge(Work(instants=[replace(each, state=State.GIVEN_UP, detail=None) for each in left]))
        return left

    def open(self, number: int) -> int:
        """The epoch, as it is before anything of the instant is written."""
        self._tell(number, State.REQUESTED, **self._self(), at=time.time())
        return self._lane.epoch()

    def closed(self, instant: Gathered) -> None:
        events = len(instant.records)
        self._tell(instant.number, State.INFLIGHT, **self._self(), at=time.time(), events=events, next=instant.ranges())

    def complete(self, instant: Gathered) -> Merged:
        """Offsets and all that goes with them. Where something of it was refused, or where something that it relies on
        may have gone, its events are written once more, in one transaction with these: then those that the database
        refuses are found, and nothing is left out."""
        done = Instant(self.writer, instant.number, State.COMPLETED)
        work = replace(instant.work(self._group, self._kind, self._reader.topic), instants=(done,))
        try:
            if not instant.again:
                return self._lane.merge(replace(work, epoch=instant.epoch))
        except EpochMoved:
            instant.again = True
        told = list(self._reader.told(instant.records))
        return self._lane.merge_events(told, replace(work, rows=instant.gaps))

    def _tell(self, number: int, state: State, **words: object) -> None:
        self._lane.merge(Work(instants=[Instant(self.writer, number, state, said(**words))]))

    def _self(self) -> dict[str, object]:
        return {"group": self._group, "host": self._host, "process": self._process}

    def _is_left(self, instant: Instant) -> bool:
        words = _words(instant.detail)
        if words.get("group") != self._group or instant.writer == self.writer:
            return False
        if words.get("host") == self._host:
            return not self._lives(words.get("process"))
        return time.time() - float(words.get("at", 0)) > _LEFT_AFTER

    def _lives(self, process: object) -> bool:
        """A container begins its processes by the same numbers each time."""
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
