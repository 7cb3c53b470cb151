"""What an offset of a checkpoint says, and how it is moved to another table.

A source is known by the form of its offsets. One that reads the same as before keeps them; those of Delta and Iceberg
are rewritten for another table. What isn't known here is refused, since it may keep more in the checkpoint than its
offsets.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, Final

from headwater.errors import ConfigurationError
from headwater.versions.forks.checkpoint import ForkError
from headwater.versions.forks.delta import LocalDeltaTable
from headwater.versions.forks.iceberg import LocalIcebergTable

_SCHEMA_LOG: Final = "_schema_log"


class SourceFormat(Enum):
    """What a source reads, as its offsets show it."""

    DELTA = "Delta table"
    ICEBERG = "Iceberg table"
    PAIMON = "Paimon table"
    KAFKA = "Kafka topics"
    FILES = "directory of files"
    NUMBERS = "rate, memory or socket"
    UNREAD = "nothing yet"


@dataclass(frozen=True)
class SourceMove:
    """That a source goes on from another table."""

    old: str
    """The directory of the table that it reads, or the source's number in the checkpoint (Delta)."""
    new: str
    """The directory of the table that it is to read."""
    version: int | None = None
    """The version of the new table that holds what the query had read of the old one."""

    @property
    def text(self) -> str:
        version = "" if self.version is None else f"@{self.version}"
        return f"{self.old}={self.new}{version}"


@dataclass(frozen=True)
class MovedSource:
    """A source of the fork: what it reads, and where it goes on."""

    source: str
    format: SourceFormat
    before: str | None
    after: str | None
    moved_to: str | None = None


def move_sources(
    offsets: Mapping[str, str | None],
    moves: tuple[SourceMove, ...],
    suitable_batch: Callable[[str, int], int | None],
) -> list[MovedSource]:
    """Return each source with its offset in the fork. `suitable_batch(source, version)` finds the batch behind which
    all of a version of a Delta table had been read."""
    moved: dict[str, SourceMove] = {}
    for move in moves:
        for source in _sources_of(move, offsets):
            if source in moved:
                raise ForkError(f"source {source} is moved twice: by {moved[source].text} and by {move.text}")
            moved[source] = move
    return [_moved(source, text, moved.get(source), suitable_batch) for source, text in offsets.items()]


def _moved(
    source: str, text: str | None, move: SourceMove | None, suitable_batch: Callable[[str, int], int | None]
) -> MovedSource:
    kind = format_of(source, text)
    if kind is SourceFormat.PAIMON:
        raise ForkError(
            f"source {source} reads a Paimon table, whose stream doesn't surely go on where a checkpoint says: where "
            "the snapshot is gone it begins elsewhere without a word. Begin a new query with scan.snapshot-id instead"
        )
    if move is None or text is None:
        return MovedSource(source, kind, text, text, None if move is None else move.new)
    if kind is SourceFormat.DELTA:
        after = LocalDeltaTable(move.new).move(text, move.old, move.version, partial(suitable_batch, source))
    elif kind is SourceFormat.ICEBERG:
        after = LocalIcebergTable(move.new).move(text, move.old, move.version)
    else:
        raise ForkError(f"source {source} reads {_ARTICLES[kind]}: such offsets can't be moved to {move.new}")
    return MovedSource(source, kind, text, after, move.new)


_ARTICLES: Final = {
    SourceFormat.KAFKA: "Kafka, whose offsets mean these topics alone",
    SourceFormat.FILES: "a directory, whose files the checkpoint names",
    SourceFormat.NUMBERS: "no table",
}


def format_of(source: str, text: str | None) -> SourceFormat:
    """Return what a source reads; an error where its offset has no known form."""
    fields = _parsed(text)
    if fields is None:
        return SourceFormat.UNREAD
    if isinstance(fields, int):
        return SourceFormat.NUMBERS
    if isinstance(fields, dict):
        for mark, kind in _MARKS.items():
            if mark in fields:
                return kind
        if fields and all(_is_topic(each) for each in fields.values()):
            return SourceFormat.KAFKA
    raise ForkError(
        f"source {source} is of a kind that this headwater doesn't know, by its offset {str(text)[:80]}: what it keeps "
        "in a checkpoint isn't known either. Begin a new query where this source has an option for its start"
    )


_MARKS: Final = {
    "reservoirVersion": SourceFormat.DELTA,
    "snapshot_id": SourceFormat.ICEBERG,
    "snapshotId": SourceFormat.PAIMON,
    "logOffset": SourceFormat.FILES,
}


def own_files(source: MovedSource) -> dict[str, bytes]:
    """Return the files of `sources/N` that are written anew: where a stream of Iceberg begins in its new table."""
    if source.format is not SourceFormat.ICEBERG or source.moved_to is None or source.after is None:
        return {}
    return {f"sources/{source.source}/offsets/0": source.after.encode()}


def source_files(checkpoint: Path, source: MovedSource) -> list[Path]:
    """Return which files of `sources/N` are taken as they are, relative to the checkpoint.

    Spark's file source keeps there which files it has seen: of batches behind its offset they would never be read.
    """
    root = checkpoint / "sources" / source.source
    files = [each for each in sorted(root.rglob("*")) if each.is_file()] if root.is_dir() else []
    if source.moved_to is not None and any(_SCHEMA_LOG in each.as_posix() for each in files):
        raise ForkError(f"source {source.source} tracks the schema of its table in the checkpoint: it can't be moved")
    if source.format is SourceFormat.FILES and source.after is not None:
        last = int(json.loads(source.after)["logOffset"])
        files = [each for each in files if (number := _log_number(each.name)) is None or number <= last]
    written = own_files(source)
    return [path for each in files if _plain_path(path := each.relative_to(checkpoint)).as_posix() not in written]


def _plain_path(path: Path) -> Path:
    """Return the path of the file that a file of checksums is of."""
    return path.with_name(path.name.removeprefix(".").removesuffix(".crc")) if path.suffix == ".crc" else path


def _log_number(name: str) -> int | None:
    plain = name.removeprefix(".").removesuffix(".crc").removesuffix(".compact")
    return int(plain) if plain.isdecimal() else None


def _sources_of(move: SourceMove, offsets: Mapping[str, str | None]) -> list[str]:
    """Return the sources that read the old table; a self-join has several."""
    if move.old in offsets:
        return [move.old]
    tables = [each(move.old) for each in (LocalDeltaTable, LocalIcebergTable) if each.is_at(move.old)]
    if not tables:
        raise ConfigurationError(f"{move.old} isn't a Delta or Iceberg table: name the directory of one")
    parsed = {source: _parsed(text) for source, text in offsets.items()}
    known = {source: fields for source, fields in parsed.items() if isinstance(fields, dict)}
    found = [source for source, fields in known.items() if any(each.is_read_by(fields) for each in tables)]
    if not found:
        listed = ", ".join(f"{source}: {text}" for source, text in offsets.items())
        raise ForkError(
            f"no source of the query reads {move.old}. Its sources are {listed}; one can be named by its number: "
            f"{next(iter(offsets), '0')}={move.new}"
        )
    return found


def _parsed(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def _is_topic(partitions: object) -> bool:
    return isinstance(partitions, dict) and all(
        str(number).isdecimal() and isinstance(offset, int) for number, offset in partitions.items()
    )
