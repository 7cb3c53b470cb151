"""Reading journals without taking part in anything: no group, no cursor, no lock.

Within a journal records come in their order; between journals by the time they were appended, as far as those of one
look at all of them go.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

from headwater.cli.events.sources import JournalDirectory
from headwater.events.avro import Codec, DecodeError
from headwater.events.clock import moment_of, wall_micros
from headwater.events.envelope import Event
from headwater.events.presentation import RecordOrigin, Undecodable, Undecoded
from headwater.journal import JournalReader, JournalRecord, MissingRecords, Tail, ordering_times

_CODEC = Codec()
_LOOK_AGAIN = 0.5  # seconds between looks for journals that are new or gone
_SHORTEST_NAP, _LONGEST_NAP = 0.01, 0.2


@dataclass(frozen=True)
class LocatedRecord:
    """A record, decoded when somebody asks for it."""

    place: str
    record: JournalRecord
    time: int
    """When it was appended at the latest, whatever its writer's clock said."""

    @cached_property
    def content(self) -> Event | Undecoded:
        """Whatever the bytes are; nothing is raised for them."""
        try:
            return _CODEC.decode(self.record.value)
        except DecodeError as e:
            return Undecodable(self.record.value, e)

    @cached_property
    def origin(self) -> RecordOrigin:
        headers = {name: value.decode("utf-8", "replace") for name, value in self.record.headers}
        return RecordOrigin(self.place, self.record.offset, moment_of(self.record.time), headers)


@dataclass(frozen=True)
class LocatedLoss:
    """Records that should have come before the one behind them."""

    place: str
    time: int
    lost: MissingRecords


Located: TypeAlias = LocatedRecord | LocatedLoss


class _Followed(NamedTuple):
    inode: int
    tail: Tail


def read_all(source: JournalDirectory) -> Iterator[Located]:
    """Yield what the journals hold at this moment, oldest first."""
    ends = [(place, path, JournalReader.open(path).next_offset()) for place, path in source.journals().items()]
    streams = [_until(place, path, end) for place, path, end in ends]
    return heapq.merge(*streams, key=lambda found: found.time)


def _until(place: str, path: Path, end: int) -> Iterator[Located]:
    reader = JournalReader.open(path)
    with reader.tail(reader.first_offset()) as tail:
        while tail.position < end and (found := _read(place, tail)):
            yield from (each for each in found if not isinstance(each, LocatedRecord) or each.record.offset < end)


def follow(source: JournalDirectory, *, from_start: bool) -> Iterator[Located]:
    """Yield what is appended from now on, for ever; with `from_start` what is there already first.

    A journal that appears later is read from its beginning.
    """
    followed: dict[str, _Followed] = {}
    looked, nap, begins_at_end = float("-inf"), _SHORTEST_NAP, not from_start
    try:
        while True:
            if time.monotonic() - looked >= _LOOK_AGAIN:
                _look(source, followed, begins_at_end=begins_at_end)
                looked, begins_at_end = time.monotonic(), False
            found = [each for place, (_, tail) in followed.items() for each in _read(place, tail)]
            yield from sorted(found, key=lambda each: each.time)
            nap = _SHORTEST_NAP if found else min(2 * nap, _LONGEST_NAP)
            time.sleep(0 if found else nap)
    finally:
        for _, tail in followed.values():
            tail.close()


def _look(source: JournalDirectory, followed: dict[str, _Followed], *, begins_at_end: bool) -> None:
    """Take up journals that are new, also under the name of one that is gone."""
    there = {place: (path, _inode(path)) for place, path in source.journals().items()}
    for place in [place for place, known in followed.items() if there.get(place, (None, -1))[1] != known.inode]:
        followed.pop(place).tail.close()
    for place, (path, inode) in there.items():
        if place not in followed and inode >= 0:
            reader = JournalReader.open(path)
            begin = reader.next_offset() if begins_at_end else reader.first_offset()
            followed[place] = _Followed(inode, reader.tail(begin))


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return -1


def _read(place: str, tail: Tail) -> list[Located]:
    batch = tail.read()
    times = ordering_times(batch.records, wall_micros())
    begins = times[0] if times else 0
    lost: list[Located] = [LocatedLoss(place, begins, each) for each in batch.missing]
    return lost + [LocatedRecord(place, each, at) for each, at in zip(batch.records, times, strict=True)]
