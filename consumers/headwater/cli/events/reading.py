"""Reading journals without taking part in anything: no group, no cursor, no lock.

Within a journal records come in their order; between journals by the time they were appended, as far as those of one
look at all of them go.

Where events are read from: `log:DIR`, a local log with its partitions, or `spool:DIR`, journals at any depth.
"""

from __future__ import annotations

import heapq
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

from headwater.errors import ConfigurationError
from headwater.events.avro import Codec, DecodeError
from headwater.events.clock import moment_of, wall_micros
from headwater.events.envelope import Event
from headwater.events.presentation import RecordOrigin, Undecodable, Undecoded
from headwater.journal import JournalReader, JournalRecord, LocalLog, MissingRecords, Tail, ordering_times
from headwater.journal.segment import SUFFIX
from headwater.publishers.log import data_directory

_DEEPEST = 3
"""A spool's journal lies at most so many directories below the one that is named."""


class JournalDirectory(ABC):
    """A directory with journals, which can come and go while it is read."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @abstractmethod
    def journals(self) -> Mapping[str, Path]:
        """Return the journals that are there now, by their names."""

    @abstractmethod
    def check(self) -> None:
        """Raise a ConfigurationError where this can't be what was meant."""


class LogDirectory(JournalDirectory):
    """The partitions of a local log."""

    def journals(self) -> Mapping[str, Path]:
        if not self.directory.is_dir():
            return {}
        return {name: self.directory / name for name in LocalLog.open(self.directory).partitions()}

    def check(self) -> None:
        if self.journals() or not any(self.directory.iterdir()):
            return
        if any(_journals_in(self.directory)):
            raise ConfigurationError(f"{self.directory} isn't a log, but holds journals: write spool:{self.directory}")
        raise ConfigurationError(f"{self.directory} isn't a log: there is no partition-0000 in it. Which one is it?")


class SpoolDirectory(JournalDirectory):
    """One journal, or a directory of journals such as `spark.headwater.spool.dir`."""

    def journals(self) -> Mapping[str, Path]:
        found = list(_journals_in(self.directory))
        if found == [self.directory]:
            return {self.directory.name: self.directory}
        return {str(path.relative_to(self.directory)): path for path in found}

    def check(self) -> None:
        if not self.journals() and any(self.directory.iterdir()):
            raise ConfigurationError(f"{self.directory} isn't a spool: neither it nor what is in it holds a journal")


def source_of(text: str) -> JournalDirectory:
    """Read what `--from` names; a ValueError where that isn't written as it should be."""
    scheme, _, place = text.partition(":")
    if scheme == "log":
        return LogDirectory(Path(place or data_directory()).expanduser())
    if scheme == "spool" and place:
        return SpoolDirectory(Path(place).expanduser())
    raise ValueError(f"{text!r} isn't a source: write log:DIR or spool:DIR")


def check_source(source: JournalDirectory) -> JournalDirectory:
    """Return the source if it can be read and is what it was called."""
    directory = source.directory
    if not directory.is_dir():
        what = "isn't a directory" if directory.exists() else "isn't there"
        raise ConfigurationError(f"{directory} {what}: name the directory of a log or a spool, --from log:DIR")
    if not os.access(directory, os.R_OK | os.X_OK):
        raise ConfigurationError(f"{directory} can't be read by this user: ask its owner for the right to")
    source.check()
    return source


def _journals_in(directory: Path) -> Iterator[Path]:
    """Yield directories that have segments, and look at nothing below them."""
    for place, below, files in os.walk(directory):
        path = Path(place)
        if any(name.endswith(SUFFIX) for name in files):
            below.clear()
            yield path
        elif len(path.relative_to(directory).parts) >= _DEEPEST:
            below.clear()
        below.sort()


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


class _FollowedSource(NamedTuple):
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
    followed: dict[str, _FollowedSource] = {}
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


def _look(source: JournalDirectory, followed: dict[str, _FollowedSource], *, begins_at_end: bool) -> None:
    """Take up journals that are new, also under the name of one that is gone."""
    there = {place: (path, _inode(path)) for place, path in source.journals().items()}
    for place in [place for place, known in followed.items() if there.get(place, (None, -1))[1] != known.inode]:
        followed.pop(place).tail.close()
    for place, (path, inode) in there.items():
        if place not in followed and inode >= 0:
            reader = JournalReader.open(path)
            begin = reader.next_offset() if begins_at_end else reader.first_offset()
            followed[place] = _FollowedSource(inode, reader.tail(begin))


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
