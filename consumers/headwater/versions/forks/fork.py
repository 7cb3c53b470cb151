"""Plans a fork of a checkpoint, and makes it: the offsets and commits that Spark asks for, and the state.

Spark begins a query again from the newest offsets and, with them, the ones before. So a fork has those of two batches,
and both stand where the fork goes on: of what lies between them nothing is read again. The fork has an id of its own:
by the old one sinks would take its batches for the old query's and skip them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from headwater.errors import ConfigurationError, TransientError
from headwater.versions.forks.checkpoint import ForkError, OffsetEntry, StreamCheckpoint, files_of, local_path
from headwater.versions.forks.delta import DeltaPosition
from headwater.versions.forks.hadoop_files import copy_file, sync_directory, write_file
from headwater.versions.forks.sources import (
    MovedSource,
    SourceFormat,
    SourceMove,
    format_of,
    move_sources,
    own_files,
    source_files,
)
from headwater.versions.forks.state_files import StateFiles, find_state

_KNOWN: Final = frozenset({"metadata", "offsets", "commits", "sources", "state"})


@dataclass(frozen=True)
class ForkPlan:
    """What a fork will hold."""

    checkpoint: Path
    batch: int
    target: Path
    query_id: str
    new_query_id: str
    sources: tuple[MovedSource, ...]
    state: StateFiles
    written: Mapping[str, bytes]
    """The files that the fork has of its own, by path."""
    copied: tuple[Path, ...]
    """The files that are taken as they are, relative to the checkpoint."""


def plan_fork(checkpoint: str, batch: int, target: str, moves: tuple[SourceMove, ...] = ()) -> ForkPlan:
    """Return what a fork behind a batch holds; an error says why there can't be one. Nothing is written."""
    found = StreamCheckpoint(local_path(checkpoint, "checkpoint"))
    place = local_path(target, "checkpoint")
    _require_free(place, found.directory)
    found.require_committed(batch)
    _require_known(found.directory, batch)
    entry = found.offsets(batch)
    sources = move_sources(entry.offsets, moves, lambda source, version: _batch_behind(found, source, version))
    state = find_state(found.directory, batch, found.state_ids(batch))
    own = [path for source in sources for path in source_files(found.directory, source)]
    new_id = str(uuid4())
    moved = entry.move({each.source: each.after for each in sources})
    batches = range(max(batch - 1, 0), batch + 1)
    commits = {each: found.commit(each) for each in batches if each in found.committed_batches()}
    written = files_of(dict.fromkeys(batches, moved), commits, new_id)
    for source in sources:
        written |= own_files(source)
    return ForkPlan(
        found.directory, batch, place, found.query_id, new_id, tuple(sources), state, written, (*own, *state.paths)
    )


def write_fork(plan: ForkPlan) -> None:
    """Make the fork: beside its place, and renamed when it is whole. Who is killed leaves nothing in that place."""
    with _building(plan.target) as part:
        for name, content in plan.written.items():
            write_file(part / name, content)
        try:
            for path in plan.copied:
                copy_file(plan.checkpoint / path, part / path)
        except FileNotFoundError as error:
            raise ForkError(
                f"{error.filename} was removed while the checkpoint was copied: the query is running, and Spark keeps "
                "the last batches alone. Fork at a newer batch, or stop the query first"
            ) from None
        for directory, _, _ in os.walk(part):
            sync_directory(Path(directory))
        _require_free(plan.target, plan.checkpoint)
        part.rename(plan.target)
        sync_directory(plan.target.parent)


@contextmanager
def _building(target: Path) -> Generator[Path, None, None]:
    """Give an empty directory beside the target, which is gone at the end if it wasn't renamed. One process at a time
    has it; what a killed one left is removed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    part.mkdir(exist_ok=True)
    opened = os.open(part, os.O_RDONLY)
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TransientError(f"another process is making the fork {target}") from None
        for each in part.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        try:
            yield part
        finally:
            if part.exists():
                shutil.rmtree(part)
    finally:
        os.close(opened)


def _require_free(target: Path, checkpoint: Path) -> None:
    if target.exists() or target.is_symlink():
        raise ConfigurationError(f"{target} exists: a fork needs a new directory")
    if target.is_relative_to(checkpoint):
        raise ConfigurationError(f"{target} lies within the checkpoint {checkpoint}: a fork needs a place of its own")


def _require_known(checkpoint: Path, batch: int) -> None:
    """What Spark doesn't keep in a checkpoint was put there by somebody whose meaning isn't known."""
    unknown = sorted(each.name for each in checkpoint.iterdir() if each.name not in _KNOWN and not _is_hidden(each))
    if unknown:
        raise ForkError(
            f"{checkpoint} holds {', '.join(unknown)} besides what Spark keeps there: whether that belongs to batch "
            f"{batch} isn't known. Move it away, or begin a new query"
        )


def _is_hidden(path: Path) -> bool:
    return path.name.startswith(".")


def _batch_behind(checkpoint: StreamCheckpoint, source: str, version: int) -> int | None:
    """Return the newest batch behind which all of a version of a Delta table had been read, and nothing later."""
    for batch in reversed(checkpoint.committed_batches()):
        with suppress(ForkError):
            entry: OffsetEntry = checkpoint.offsets(batch)
            text = entry.offsets.get(source)
            if text is None or format_of(source, text) is not SourceFormat.DELTA:
                return None
            if DeltaPosition.parse(text).last_read == version:
                return batch
    return None
