"""Spools in a shared directory that is no path of this machine: how they get there, and what stands there of them.

    <shared>/<spool>/…           its files
    <shared>/<spool>/handed.json written last: without it a directory is no spool yet, and may never be one
    <shared>/<spool>/claim.json  who ships it just now

Nothing is renamed, because object stores can't; nothing is changed in what has been handed over, but its claim.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from headwater.errors import HeadwaterError
from headwater.journal import JournalReader
from headwater.journal.files import OS_FILES
from headwater.journal.position import committed_positions
from headwater.listeners.bus.course import GUARD
from headwater.listeners.bus.handover import is_of_one_host
from headwater.listeners.bus.left import kept_for
from headwater.listeners.bus.passport import read_passport
from headwater.listeners.bus.remote import RemoteError, RemoteFiles

_LOG = logging.getLogger(__name__)
MARKER: Final = "handed.json"
CLAIM: Final = "claim.json"
TAKEN: Final = "taken.json"
"""Beside a spool that was taken up from there: what it is a copy of."""


@dataclass(frozen=True)
class Handed:
    """A spool that is whole over there."""

    name: str
    files: Mapping[str, int]
    """Their sizes, by their paths in it."""
    waiting: Mapping[str, int]
    """How many records a listener hasn't dealt with."""
    positions: Mapping[str, int]
    application: str = ""
    producer: str = ""
    host: str = ""
    moment: str = ""
    """When it was handed over."""

    @property
    def size(self) -> int:
        return sum(self.files.values())

    def to_json(self) -> bytes:
        told = {key: value for key, value in vars(self).items() if key != "name"}
        return json.dumps({**told, "version": 1}).encode()

    @classmethod
    def from_json(cls, name: str, data: bytes) -> Handed:
        told: dict[str, Any] = json.loads(data)
        return cls(
            name,
            _counts(told["files"]),
            _counts(told["waiting"]),
            _counts(told["positions"]),
            str(told["application"]),
            str(told["producer"]),
            str(told["host"]),
            str(told["moment"]),
        )


def describe(name: str, spool: Path) -> Handed:
    """What is to be said of a closed spool over there."""
    passport, reader = read_passport(OS_FILES, spool), JournalReader.open(spool)
    first, end = reader.first_offset(), reader.next_offset()
    positions = positions_of(spool)
    return Handed(
        name=name,
        files={path: (spool / path).stat().st_size for path in _files_of(spool)},
        waiting={name: max(0, end - max(first, positions.get(name, first))) for name in sorted(kept_for(spool))},
        positions=positions,
        application=passport.application.id,
        producer=str(passport.producer or ""),
        host=passport.host,
        moment=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )


def positions_of(spool: Path) -> dict[str, int]:
    """Where its listeners stand."""
    return {name: at for name, at in committed_positions(OS_FILES, spool).items() if name != GUARD}


def free_name(files: RemoteFiles, name: str) -> str:
    """A name over there that no whole spool has: `name`, or that with a number."""
    base, number, free = name.partition(".handed-")[0], 1, name
    while files.read(f"{free}/{MARKER}") is not None:
        number += 1
        free = f"{base}.handed-{number}"
    return free


def upload(spool: Path, files: RemoteFiles, name: str) -> None:
    """Take a closed spool there, whole or not at all: what is left of a failure has no marker. A RemoteError."""
    handed = describe(name, spool)
    try:
        files.remove(name)
        for path in handed.files:
            files.put(spool / path, f"{name}/{path}")
        _check(files, handed)
        files.write(f"{name}/{MARKER}", handed.to_json(), replace=True)
    except RemoteError:
        _remove_quietly(files, name)
        raise


def hand_over_there(spool: Path, files: RemoteFiles) -> bool:
    """The same, and then the one here goes; whether it is there. A crash in between leaves two: events come twice."""
    try:
        upload(spool, files, free_name(files, spool.name))
    except (HeadwaterError, OSError) as e:
        _LOG.warning("the spool %s stays where it is: %s", spool, e)
        return False
    shutil.rmtree(spool, ignore_errors=True)
    _LOG.info("the spool %s is handed over", spool)
    return True


def download(handed: Handed, files: RemoteFiles, target: Path) -> None:
    """Fetch a spool into a directory that isn't there yet. A RemoteError where it isn't as it was handed over."""
    for path, size in handed.files.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        files.get(f"{handed.name}/{path}", target / path)
        if (target / path).stat().st_size != size:
            raise RemoteError(f"{handed.name}/{path} isn't as it was handed over: it had {size} bytes")


def look_there(files: RemoteFiles, known: Mapping[str, Handed]) -> dict[str, Handed]:
    """The whole spools that are there, by their names; what is `known` isn't read again. A RemoteError."""
    names = sorted(each.name for each in files.names("") if each.is_directory)
    found = {name: known.get(name) or read_handed(files, name) for name in names}
    return {name: handed for name, handed in found.items() if handed is not None}


def unfinished_there(files: RemoteFiles, whole: Collection[str]) -> list[str]:
    """Directories that never became spools, or aren't yet. A RemoteError."""
    return sorted(each.name for each in files.names("") if each.is_directory and each.name not in whole)


def read_handed(files: RemoteFiles, name: str) -> Handed | None:
    """What is said of a spool over there; None where it isn't whole, or nobody can read what is said."""
    data = files.read(f"{name}/{MARKER}")
    try:
        return None if data is None else Handed.from_json(name, data)
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        _LOG.warning("%s/%s can't be read (%s): this spool is left alone", name, MARKER, e)
        return None


def _check(files: RemoteFiles, handed: Handed) -> None:
    there: dict[str, int] = {}
    for directory in sorted({str(Path(path).parent) for path in handed.files}):
        before = "" if directory == "." else f"{directory}/"
        there |= {f"{before}{each.name}": each.size for each in files.names(f"{handed.name}/{before}".rstrip("/"))}
    wrong = [path for path, size in handed.files.items() if there.get(path) != size]
    if wrong:
        raise RemoteError(f"{handed.name}/{wrong[0]} hasn't got there whole")


def _files_of(spool: Path) -> Iterator[str]:
    for path in sorted(spool.rglob("*")):
        if path.is_file() and not is_of_one_host(path) and path.name != TAKEN:
            yield path.relative_to(spool).as_posix()


def _remove_quietly(files: RemoteFiles, name: str) -> None:
    try:
        files.remove(name)
    except HeadwaterError as e:
        _LOG.info("what was copied to %s stays there without its marker: %s", name, e)


def _counts(told: Mapping[str, Any]) -> dict[str, int]:
    return {str(name): int(count) for name, count in told.items()}
