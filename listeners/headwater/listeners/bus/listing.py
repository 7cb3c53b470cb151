"""What lies in spools, for people who look: whose it is, who hasn't got it, and what is to become of it. Nothing is
changed by looking, and all of it is quick: one segment of a spool is read at most."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path

from headwater.events.clock import moment_of
from headwater.journal import JournalReader, StorageError
from headwater.journal.files import OS_FILES, read_file
from headwater.journal.lock import describe_holder, is_locked, pid_of_holder
from headwater.journal.position import committed_positions, damaged_positions
from headwater.journal.segment import HEADER_SIZE, list_bases, segment_path, unpack_header
from headwater.journal.writer import LOCK_NAME
from headwater.listeners.bus.course import is_course_damaged
from headwater.listeners.bus.handover import is_incoming
from headwater.listeners.bus.left import kept_for
from headwater.listeners.bus.passport import Passport, read_passport


class Standing(str, Enum):
    """Who has a spool now."""

    LIVE = "live"
    SHIPPED = "being shipped"
    LEFT = "left"


@dataclass(frozen=True)
class Waiting:
    """What a listener hasn't dealt with."""

    records: int
    """At most: those of other families are among them."""
    oldest: datetime | None
    """When the first of them was appended."""
    dropped: int = 0
    """So many before those went because the spool reached its limit, and it doesn't know yet."""
    could_not_be_made: bool = False


@dataclass(frozen=True)
class Left:
    """A spool that there is."""

    directory: Path
    passport: Passport
    standing: Standing
    holder: str
    since: datetime | None
    size: int
    records: int
    waiting: Mapping[str, Waiting]
    faults: tuple[str, ...]
    """What can be seen at once of what is damaged in it."""

    @property
    def is_held(self) -> bool:
        """Its driver runs, or somebody ships it just now."""
        return self.standing is not Standing.LEFT

    @property
    def fate(self) -> str:
        """What becomes of it if nobody does anything."""
        if self.standing is Standing.LIVE:
            return "its driver delivers it"
        if self.standing is Standing.SHIPPED:
            return f"{self.holder} delivers it"
        behind = [name for name, each in self.waiting.items() if each.records]
        if not behind:
            return "goes when somebody looks: all of it is delivered"
        unmade = [name for name in behind if self.waiting[name].could_not_be_made]
        if unmade:
            return f"waits for a driver with {', '.join(behind)}; `rename` or `drop` {', '.join(unmade)} if none is"
        return f"the next driver here with {', '.join(behind)} delivers it, or `headwater spool ship`"


def left_in(places: Collection[Path]) -> list[Left]:
    """All spools right under these directories, by what they are called."""
    found = [spool for place in dict.fromkeys(places) if place.is_dir() for spool in place.iterdir() if spool.is_dir()]
    spools = [spool for spool in sorted(found) if not is_incoming(spool) and list_bases(OS_FILES, spool)]
    return [look_at(spool) for spool in spools]


def look_at(spool: Path) -> Left:
    """A StorageError where it can't be read; one that goes in this moment may be told as empty."""
    passport = read_passport(OS_FILES, spool)
    reader = JournalReader.open(spool)
    first, end = reader.first_offset(), reader.next_offset()
    positions = committed_positions(OS_FILES, spool)
    waiting = {
        name: _waiting(reader, positions.get(name, first), first, end, could_not_be_made=name in passport.unmade)
        for name in sorted(kept_for(spool))
    }
    return Left(
        directory=spool,
        passport=passport,
        standing=_standing(spool, passport),
        holder=describe_holder(spool / LOCK_NAME),
        since=_since(spool, passport, first),
        size=size_of(spool),
        records=end - first,
        waiting=waiting,
        faults=tuple(_faults(spool, passport)),
    )


def size_of(spool: Path) -> int:
    """What its files take; those that go in this moment take nothing."""
    total = 0
    for each in spool.glob("*"):
        try:
            total += each.stat().st_size if each.is_file() else 0
        except FileNotFoundError:  # noqa: PERF203 - a driver drops segments while we look
            continue
    return total


def _waiting(reader: JournalReader, position: int, first: int, end: int, *, could_not_be_made: bool) -> Waiting:
    begin = max(first, position)
    return Waiting(max(0, end - begin), _time_at(reader, begin), max(0, first - position), could_not_be_made)


def _time_at(reader: JournalReader, offset: int) -> datetime | None:
    with reader.tail(offset) as tail:
        try:
            records = tail.read(1).records
        except StorageError:
            return None
    return moment_of(records[0].time) if records else None


def _standing(spool: Path, passport: Passport) -> Standing:
    lock = spool / LOCK_NAME
    if not is_locked(lock):
        return Standing.LEFT
    return Standing.LIVE if passport.pid in {0, pid_of_holder(lock)} else Standing.SHIPPED


def _since(spool: Path, passport: Passport, first: int) -> datetime | None:
    try:
        return datetime.fromisoformat(passport.since)
    except ValueError:
        header = unpack_header(read_file(OS_FILES, path := segment_path(spool, first), HEADER_SIZE) or b"", path)
        return moment_of(header.created) if header else None


def _faults(spool: Path, passport: Passport) -> list[str]:
    told = [f"{path.name} is damaged" for path in damaged_positions(OS_FILES, spool)]
    told += [] if passport.producer else ["spool.json can't be read"]
    told += ["course.json can't be read"] if is_course_damaged(OS_FILES, spool) else []
    return told
