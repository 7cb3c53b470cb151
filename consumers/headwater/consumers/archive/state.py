"""What an archive holds: the files, and how far each partition of the bus is archived."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Any, Final, NamedTuple

from headwater.consumers.sources.api import OffsetGap
from headwater.errors import HeadwaterError, TerminalError
from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition

_PATH: Final = re.compile(r"events/day=[0-9-]+/kind=[^/\0]+/[0-9a-f]{16}-[0-9a-f]{12}\.parquet")


class OffsetsTakenError(HeadwaterError):
    """Another process archived these offsets meanwhile."""


class FileSpan(NamedTuple):
    """The records of one partition in a file."""

    partition: BusPartition
    first: int
    last: int
    rows: int


@dataclass(frozen=True)
class ArchiveFile:
    """A file of the archive."""

    path: str
    """Relative to the archive's directory: `events/day=…/kind=…/….parquet`."""
    day: date
    kind: str
    rows: int
    size: int
    sha256: str
    spans: tuple[FileSpan, ...]
    time: int = 0
    """The earliest append time in it, in microseconds; 0 if the bus has none."""
    memory: int = 0
    """How many bytes its rows take in memory."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class ArchivedRange(NamedTuple):
    """What a commit archived of a partition: every record from `first` to before `end`."""

    partition: BusPartition
    topic: str
    first: int
    end: int


class Operation(str, Enum):
    """What a commit does."""

    APPEND = "append"
    COMPACT = "compact"
    EXPIRE = "expire"


@dataclass(frozen=True)
class ArchiveCommit:
    """One change of the archive, whole or not at all."""

    operation: Operation
    ranges: tuple[ArchivedRange, ...] = ()
    gaps: tuple[OffsetGap, ...] = ()
    add: tuple[ArchiveFile, ...] = ()
    remove: tuple[str, ...] = ()
    """Paths of files that are no part of the archive any more."""


class ArchivedPartition(NamedTuple):
    """How far a partition is archived."""

    topic: str
    first: int
    next: int
    expired: int
    """The offset before which retention removed records; not all before it have to be gone."""


@dataclass(frozen=True)
class ArchiveState:
    """The archive after a commit."""

    version: int = 0
    partitions: Mapping[BusPartition, ArchivedPartition] = field(default_factory=dict)
    files: Mapping[str, ArchiveFile] = field(default_factory=dict)
    gaps: tuple[OffsetGap, ...] = ()

    def apply(self, commit: ArchiveCommit) -> ArchiveState:
        """Return the archive after a commit. Raises OffsetsTakenError if it doesn't continue where this one ends."""
        partitions, files = dict(self.partitions), dict(self.files)
        for each in commit.ranges:
            partitions[each.partition] = _extend(partitions.get(each.partition), each)
        for path in commit.remove:
            removed = files.pop(path, None)
            if removed is None:
                raise OffsetsTakenError(f"{path} isn't in the archive any more: another process replaced it")
            if commit.operation is Operation.EXPIRE:
                _expire(partitions, removed)
        files.update({each.path: each for each in commit.add})
        return ArchiveState(self.version + 1, partitions, files, (*self.gaps, *commit.gaps))

    def next_offsets(self, cluster: str) -> dict[BusPartition, int]:
        """Return where archiving continues in the partitions of a cluster."""
        return {each: known.next for each, known in self.partitions.items() if each.cluster == cluster}


def _extend(known: ArchivedPartition | None, archived: ArchivedRange) -> ArchivedPartition:
    if known is None:
        return ArchivedPartition(archived.topic, archived.first, archived.end, archived.first)
    if archived.first != known.next:
        raise OffsetsTakenError(
            f"{archived.topic} partition {archived.partition.number} is archived up to offset {known.next}, "
            f"and not to {archived.first}: another process archives it too"
        )
    return known._replace(topic=archived.topic, next=archived.end)


def _expire(partitions: dict[BusPartition, ArchivedPartition], removed: ArchiveFile) -> None:
    for span in removed.spans:
        known = partitions[span.partition]
        partitions[span.partition] = known._replace(expired=max(known.expired, span.last + 1))


def commit_object(commit: ArchiveCommit) -> dict[str, Any]:
    """Return a commit as JSON has it."""
    return {
        "operation": commit.operation.value,
        "ranges": [[*each.partition, each.topic, each.first, each.end] for each in commit.ranges],
        "gaps": [*map(_gap_object, commit.gaps)],
        "add": [*map(_file_object, commit.add)],
        "remove": list(commit.remove),
    }


def read_commit(found: Mapping[str, Any]) -> ArchiveCommit:
    return ArchiveCommit(
        Operation(found["operation"]),
        tuple(ArchivedRange(BusPartition(*each[:3]), *each[3:]) for each in found["ranges"]),
        tuple(map(_read_gap, found["gaps"])),
        tuple(map(_read_file, found["add"])),
        tuple(found["remove"]),
    )


def state_object(state: ArchiveState) -> dict[str, Any]:
    """Return the archive as JSON has it."""
    return {
        "version": state.version,
        "partitions": [[*partition, *known] for partition, known in state.partitions.items()],
        "files": [*map(_file_object, state.files.values())],
        "gaps": [*map(_gap_object, state.gaps)],
    }


def read_state(found: Mapping[str, Any]) -> ArchiveState:
    files: Iterable[ArchiveFile] = map(_read_file, found["files"])
    return ArchiveState(
        found["version"],
        {BusPartition(*each[:3]): ArchivedPartition(*each[3:]) for each in found["partitions"]},
        {each.path: each for each in files},
        tuple(map(_read_gap, found["gaps"])),
    )


def _file_object(file: ArchiveFile) -> dict[str, Any]:
    spans = [[*span.partition, span.first, span.last, span.rows] for span in file.spans]
    return {**vars(file), "day": file.day.isoformat(), "spans": spans}


def _read_file(found: Mapping[str, Any]) -> ArchiveFile:
    """Read what a log says of a file. A TerminalError if its path could lead out of the archive."""
    if _PATH.fullmatch(found["path"]) is None:
        raise TerminalError(f"the archive's log names {found['path']!r}, which no file of an archive is called")
    spans = tuple(FileSpan(BusPartition(*each[:3]), *each[3:]) for each in found["spans"])
    values: dict[str, Any] = {**found, "day": date.fromisoformat(found["day"]), "spans": spans}
    return ArchiveFile(**values)


def _gap_object(gap: OffsetGap) -> list[object]:
    return [*gap.partition, gap.first, gap.end, gap.reason.value]


def _read_gap(found: Sequence[Any]) -> OffsetGap:
    return OffsetGap(BusPartition(*found[:3]), found[3], found[4], GapReason(found[5]))
