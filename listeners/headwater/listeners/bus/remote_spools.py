"""Spools in a remote shared directory, such as HDFS or an object store: upload, download and listing.

    <shared>/<spool>/…           its files
    <shared>/<spool>/handover.json written last: without it a directory is no spool yet, and may never be one
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
from headwater.listeners.bus.handover import is_of_one_host
from headwater.listeners.bus.producer_progress import PROGRESS_CURSOR
from headwater.listeners.bus.remote_files import RemoteError, RemoteFiles
from headwater.listeners.bus.spool_listeners import waiting_listeners
from headwater.listeners.bus.spool_manifest import read_manifest

_LOG = logging.getLogger(__name__)
MARKER: Final = "handover.json"
CLAIM: Final = "claim.json"
ORIGIN: Final = "origin.json"
"""Beside a spool that was taken up from there: what it is a copy of."""


@dataclass(frozen=True)
class RemoteSpool:
    """A complete spool in the remote directory."""

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
        fields = {key: value for key, value in vars(self).items() if key != "name"}
        return json.dumps({**fields, "version": 1}).encode()

    @classmethod
    def from_json(cls, name: str, data: bytes) -> RemoteSpool:
        fields: dict[str, Any] = json.loads(data)
        return cls(
            name,
            _parse_counts(fields["files"]),
            _parse_counts(fields["waiting"]),
            _parse_counts(fields["positions"]),
            str(fields["application"]),
            str(fields["producer"]),
            str(fields["host"]),
            str(fields["moment"]),
        )


def describe_spool(name: str, spool: Path) -> RemoteSpool:
    """What is to be said of a closed spool over there."""
    manifest, reader = read_manifest(OS_FILES, spool), JournalReader.open(spool)
    first, end = reader.first_offset(), reader.next_offset()
    positions = listener_positions(spool)
    return RemoteSpool(
        name=name,
        files={path: (spool / path).stat().st_size for path in _list_files(spool)},
        waiting={
            name: max(0, end - max(first, positions.get(name, first))) for name in sorted(waiting_listeners(spool))
        },
        positions=positions,
        application=manifest.application.id,
        producer=str(manifest.producer or ""),
        host=manifest.host,
        moment=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )


def listener_positions(spool: Path) -> dict[str, int]:
    """Where its listeners stand."""
    return {name: at for name, at in committed_positions(OS_FILES, spool).items() if name != PROGRESS_CURSOR}


def free_name(files: RemoteFiles, name: str) -> str:
    """A name over there that no whole spool has: `name`, or that with a number."""
    base, number, free = name.partition(".copy-")[0], 1, name
    while files.read(f"{free}/{MARKER}") is not None:
        number += 1
        free = f"{base}.copy-{number}"
    return free


def upload(spool: Path, files: RemoteFiles, name: str) -> None:
    """Take a closed spool there, whole or not at all: what is left of a failure has no marker. A RemoteError."""
    remote_spool = describe_spool(name, spool)
    try:
        files.remove(name)
        for path in remote_spool.files:
            files.put(spool / path, f"{name}/{path}")
        _check_upload(files, remote_spool)
        files.write(f"{name}/{MARKER}", remote_spool.to_json(), replace=True)
    except RemoteError:
        _remove_quietly(files, name)
        raise


def move_to_remote(spool: Path, files: RemoteFiles) -> bool:
    """The same, and then the one here goes; whether it is there. A crash in between leaves two: events come twice."""
    try:
        upload(spool, files, free_name(files, spool.name))
    except (HeadwaterError, OSError) as e:
        _LOG.warning("the spool %s stays where it is: %s", spool, e)
        return False
    shutil.rmtree(spool, ignore_errors=True)
    _LOG.info("the spool %s is handed over", spool)
    return True


def download(remote_spool: RemoteSpool, files: RemoteFiles, target: Path) -> None:
    """Fetch a spool into a directory that isn't there yet. A RemoteError where it isn't as it was handed over."""
    for path, size in remote_spool.files.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        files.get(f"{remote_spool.name}/{path}", target / path)
        if (target / path).stat().st_size != size:
            raise RemoteError(f"{remote_spool.name}/{path} isn't as it was handed over: it had {size} bytes")


def list_remote_spools(files: RemoteFiles, known: Mapping[str, RemoteSpool]) -> dict[str, RemoteSpool]:
    """The whole spools that are there, by their names; what is `known` isn't read again. A RemoteError."""
    names = sorted(each.name for each in files.names("") if each.is_directory)
    found = {name: known.get(name) or read_remote_spool(files, name) for name in names}
    return {name: remote_spool for name, remote_spool in found.items() if remote_spool is not None}


def list_unfinished_spools(files: RemoteFiles, whole: Collection[str]) -> list[str]:
    """Directories that never became spools, or aren't yet. A RemoteError."""
    return sorted(each.name for each in files.names("") if each.is_directory and each.name not in whole)


def read_remote_spool(files: RemoteFiles, name: str) -> RemoteSpool | None:
    """What is said of a spool over there; None where it isn't whole, or nobody can read what is said."""
    data = files.read(f"{name}/{MARKER}")
    try:
        return None if data is None else RemoteSpool.from_json(name, data)
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        _LOG.warning("%s/%s can't be read (%s): this spool is left alone", name, MARKER, e)
        return None


def _check_upload(files: RemoteFiles, remote_spool: RemoteSpool) -> None:
    there: dict[str, int] = {}
    for directory in sorted({str(Path(path).parent) for path in remote_spool.files}):
        before = "" if directory == "." else f"{directory}/"
        there |= {
            f"{before}{each.name}": each.size for each in files.names(f"{remote_spool.name}/{before}".rstrip("/"))
        }
    wrong = [path for path, size in remote_spool.files.items() if there.get(path) != size]
    if wrong:
        raise RemoteError(f"{remote_spool.name}/{wrong[0]} hasn't got there whole")


def _list_files(spool: Path) -> Iterator[str]:
    for path in sorted(spool.rglob("*")):
        if path.is_file() and not is_of_one_host(path) and path.name != ORIGIN:
            yield path.relative_to(spool).as_posix()


def _remove_quietly(files: RemoteFiles, name: str) -> None:
    try:
        files.remove(name)
    except HeadwaterError as e:
        _LOG.info("what was copied to %s stays there without its marker: %s", name, e)


def _parse_counts(fields: Mapping[str, Any]) -> dict[str, int]:
    return {str(name): int(count) for name, count in fields.items()}
