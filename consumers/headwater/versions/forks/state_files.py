"""Finds the files from which Spark loads the state behind a batch, and what else belongs to the state.

Batch N leaves version N + 1. A store (one for each partition of an operator, several in a join) loads a version from
the newest whole one before it and the changes since: `.snapshot` and `.delta` of the HDFS-backed provider, `.zip` and
`.changelog` of RocksDB. A zip lists the files in `SSTs` that belong to it.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headwater.versions.forks.checkpoint import ForkError

_STATE: Final = "state"
_VERSION: Final = re.compile(r"(\d+)(?:_([0-9a-fA-F-]{36}))?\.(delta|snapshot|zip|changelog)")
_NUMBERED: Final = re.compile(r"(\d+)(?:[_.].*)?")
_OF_BATCHES: Final = frozenset({"_metadata", "_stateSchema"})
"""What is numbered in these by the batch, not by the version that it leaves."""
_WHOLE: Final = frozenset({"snapshot", "zip"})
_SHARED: Final = {"SSTs": "sstFiles", "logs": "logFiles"}
"""Directories of files that a zip lists, and its word for them."""


@dataclass(frozen=True)
class StateFiles:
    """The files of the state behind a batch."""

    stores: int
    paths: tuple[Path, ...]
    """Relative to the checkpoint."""
    bytes: int


@dataclass(frozen=True)
class _StoredVersion:
    number: int
    id: str | None
    kind: str


def find_state(checkpoint: Path, batch: int, ids: Mapping[str, list[list[str]]]) -> StateFiles:
    """Return the files that are needed of the state; an error says what is missing of it."""
    root = checkpoint / _STATE
    if not root.is_dir():
        return StateFiles(0, (), 0)
    files = [each for each in sorted(root.rglob("*")) if each.is_file() and not each.name.endswith(".tmp")]
    stores: dict[Path, list[_StoredVersion]] = {}
    for path in files:
        if found := _VERSION.fullmatch(path.name):
            stores.setdefault(path.parent, []).append(_StoredVersion(int(found[1]), found[2], found[3]))
    needed = {each: range(_first_needed(each, found, batch), batch + 2) for each, found in stores.items()}
    _require_partitions(root, stores)
    _require_ids(root, stores, batch, ids)
    shared = {directory: _shared_files(directory, versions) for directory, versions in needed.items()}
    chosen = [each for each in files if _is_needed(each, root, batch, needed, shared)]
    size = sum(each.stat().st_size for each in chosen)
    return StateFiles(len(stores), tuple(each.relative_to(checkpoint) for each in chosen), size)


def _is_needed(
    path: Path, root: Path, batch: int, needed: Mapping[Path, range], shared: Mapping[Path, set[str]]
) -> bool:
    name = _plain_name(path.name)
    if path.parent.name in _SHARED:
        return name in shared.get(path.parent.parent, ())
    if found := _VERSION.fullmatch(name):
        return path.parent in needed and int(found[1]) in needed[path.parent]
    numbered = _NUMBERED.fullmatch(name)
    of_batches = not _OF_BATCHES.isdisjoint(path.relative_to(root).parts)
    return numbered is None or int(numbered[1]) <= (batch if of_batches else batch + 1)


def _plain_name(name: str) -> str:
    """Return the name of the file that a file of checksums is of; checksums of Spark 4.1 have checksums of Hadoop."""
    while name.endswith(".crc"):
        name = name.removeprefix(".").removesuffix(".crc")
    return name


def _first_needed(directory: Path, versions: Collection[_StoredVersion], batch: int) -> int:
    """Return from which version on files are needed: the newest whole one, where versions have no ids. With ids there
    may be files of attempts that failed, and which belong together is in the files: all are needed."""
    target = batch + 1
    known = {each.number for each in versions}
    whole = max((each.number for each in versions if each.kind in _WHOLE and each.number <= target), default=0)
    missing = next((number for number in range(whole + 1, target + 1) if number not in known), None)
    if missing is not None:
        raise ForkError(
            f"the state behind batch {batch} isn't there any more: {directory} lacks version {missing}. Spark keeps "
            "the last batches alone (spark.sql.streaming.minBatchesToRetain): fork at a newer one, or begin anew"
        )
    return whole if all(each.id is None for each in versions) else 0


def _require_partitions(root: Path, stores: Iterable[Path]) -> None:
    """Partitions are numbered without a hole in each operator."""
    by_operator: dict[str, set[int]] = {each.name: set() for each in root.iterdir() if each.name.isdecimal()}
    for directory in stores:
        operator, partition = directory.relative_to(root).parts[:2]
        by_operator.setdefault(operator, set()).add(int(partition))
    for operator, partitions in by_operator.items():
        count = max(1, *(each + 1 for each in partitions), _partitions_of(root / operator))
        missing = sorted(set(range(count)) - partitions)
        if missing:
            raise ForkError(f"{root / operator} has no state of partition {missing[0]}: the checkpoint isn't whole")


def _partitions_of(operator: Path) -> int:
    """Return how many partitions an operator has, as it says itself since Spark 4.0; 0 where it doesn't."""
    path = operator / "_metadata" / "metadata"
    try:
        fields = json.loads(path.read_text(encoding="utf-8").partition("\n")[2])
        return max((int(each["numPartitions"]) for each in fields["stateStoreInfo"]), default=0)
    except FileNotFoundError:
        return 0
    except (ValueError, KeyError, TypeError) as error:
        raise ForkError(f"{path} can't be read: {error}") from error


def _require_ids(
    root: Path,
    stores: Mapping[Path, Iterable[_StoredVersion]],
    batch: int,
    ids: Mapping[str, list[list[str]]],
) -> None:
    for operator, partitions in ids.items():
        for number, wanted in enumerate(partitions):
            below = root / operator / str(number)
            of_partition = (each for path, found in stores.items() if path.is_relative_to(below) for each in found)
            there = {each.id for each in of_partition if each.number == batch + 1}
            missing = sorted(set(wanted) - {each for each in there if each is not None})
            if missing:
                raise ForkError(f"{below} lacks version {batch + 1} with the id {missing[0]} of the commit {batch}")


def _shared_files(directory: Path, versions: range) -> set[str]:
    """Return the names of the files that zips of these versions list."""
    found: set[str] = set()
    for path in directory.glob("*.zip"):
        of_name = _VERSION.fullmatch(path.name)
        if of_name is None or int(of_name[1]) not in versions:
            continue
        listed = set(_listed_in(path))
        found |= listed
        lost = sorted(each for each in listed if not any((directory / kind / each).exists() for kind in _SHARED))
        if lost and of_name[2] is None:
            raise ForkError(f"{path} needs {lost[0]}, which isn't there any more: fork at a newer batch")
    return found


def _listed_in(path: Path) -> Iterator[str]:
    try:
        with zipfile.ZipFile(path) as opened:
            lines = opened.read("metadata").decode().split("\n")
        fields = json.loads(lines[1])
        for word in _SHARED.values():
            for each in fields.get(word) or ():
                name = each.get("dfsSstFileName") or each.get("dfsLogFileName")
                if name:
                    yield name
    except (zipfile.BadZipFile, KeyError, IndexError, ValueError) as error:
        raise ForkError(f"{path} can't be read as a snapshot of RocksDB: {error}") from error
