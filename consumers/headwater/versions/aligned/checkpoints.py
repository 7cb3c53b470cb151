"""An aligned job's checkpoint: a directory with one file for each barrier, which a person can read.

A file is written beside its place, synced, and renamed, so that a crash leaves the old one or the new one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from headwater.errors import ConfigurationError, TerminalError
from headwater.versions.cuts import Cut

_JOB: Final = "job.json"
_BARRIERS: Final = "barriers"
_ROLLED_BACK: Final = "rolled-back"
_STARTED: Final = "started: what it wrote is looked for in each sink"
_COMMITTED: Final = "committed: all its writes are done"


class CheckpointError(TerminalError):
    """A checkpoint is another job's, or isn't whole."""


@dataclass(frozen=True)
class JobStart:
    """Where a job began: at the whole tables of its first data version, or after certain snapshots."""

    job: str
    group: str
    tables: Mapping[str, str]
    """The table of each source."""
    first: int
    after: Cut | None
    requested: str
    incarnation: str
    """Told apart by this, a job with a new checkpoint writes its barriers again."""

    @property
    def mark_prefix(self) -> str:
        """What the marks of all its writes begin with."""
        return f"headwater/{self.group}/{self.job}/{self.incarnation}"


@dataclass(frozen=True)
class Barrier:
    """A data version that the job works on or has committed."""

    number: int
    cut: Cut
    before: Cut | None
    """The cut of the barrier before."""
    is_committed: bool
    sinks: Mapping[str, int | None] = field(default_factory=dict)
    """The snapshot that each sink had before this barrier wrote it first."""
    fault: str | None = None
    """Why the job can't go on with it: a write of it can't be found again."""

    def commit(self) -> Barrier:
        return replace(self, is_committed=True)


class Checkpoint:
    """The files of a job's checkpoint."""

    def __init__(self, directory: str) -> None:
        self._directory: Final = Path(_local_path(directory)).absolute()
        self.location: Final = str(self._directory)

    def start(self) -> JobStart | None:
        """Return where the job began; None for a new checkpoint."""
        found = _read(self._directory / _JOB)
        if found is None:
            return None
        after = found["after"]
        return JobStart(
            found["job"],
            found["group"],
            found["tables"],
            found["first data version"],
            None if after is None else Cut.from_json(json.dumps(after)),
            found["start that was asked for"],
            found["incarnation"],
        )

    def write_start(self, start: JobStart) -> None:
        fields = {
            "job": start.job,
            "group": start.group,
            "tables": dict(start.tables),
            "first data version": start.first,
            "after": None if start.after is None else json.loads(start.after.to_json()),
            "start that was asked for": start.requested,
            "incarnation": start.incarnation,
        }
        _write(self._directory / _JOB, fields)

    def newest(self) -> Barrier | None:
        """Return the newest barrier."""
        files = self._files()
        return _barrier(_read(files[-1])) if files else None

    def barriers(self) -> list[Barrier]:
        """Return all barriers, the oldest first."""
        return [barrier for file in self._files() if (barrier := _barrier(_read(file))) is not None]

    def barrier(self, number: int) -> Barrier | None:
        """Return the barrier of a data version; None if the job hasn't had it."""
        return _barrier(_read(self._file(number)))

    def write(self, barrier: Barrier) -> None:
        fields = {
            "data version": barrier.number,
            "state": _COMMITTED if barrier.is_committed else _STARTED,
            "cut": json.loads(barrier.cut.to_json()),
            "cut before": None if barrier.before is None else json.loads(barrier.before.to_json()),
            "sinks before": dict(barrier.sinks),
            **({} if barrier.fault is None else {"fault": barrier.fault}),
            "written at": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        }
        _write(self._file(barrier.number), fields)

    def remove(self, number: int) -> None:
        """Remove the barrier of a data version, if it is there."""
        self._file(number).unlink(missing_ok=True)

    def set_back(self, keeps: int | None, incarnation: str, name: str) -> None:
        """Take out all barriers behind one, or all of them, and keep them under a name. What the job writes next it
        writes as another incarnation, so that nothing that it wrote before is taken for it. It can be done again."""
        directory, start = self._rollback_directory(name), _read(self._directory / _JOB)
        if start is None:
            raise CheckpointError(f"there is no checkpoint at {self.location} any more")
        if _read(directory / _JOB) is None:
            _write(directory / _JOB, start)
        _write(self._directory / _JOB, {**start, "incarnation": incarnation})
        for file in self._files():
            if int(file.stem) > (0 if keeps is None else keeps):
                _move(file, directory / _BARRIERS)

    def restore(self, name: str) -> None:
        """Put back what was taken out under a name. It can be done again."""
        directory = self._rollback_directory(name)
        start = _read(directory / _JOB)
        if start is None:
            return
        for file in sorted((directory / _BARRIERS).glob("*.json")):
            _move(file, self._directory / _BARRIERS)
        _write(self._directory / _JOB, start)
        (directory / _JOB).unlink()

    def _rollback_directory(self, name: str) -> Path:
        return self._directory / _ROLLED_BACK / name

    def _files(self) -> list[Path]:
        return sorted((self._directory / _BARRIERS).glob("*.json"))

    def _file(self, number: int) -> Path:
        return self._directory / _BARRIERS / f"{number:012d}.json"


def _barrier(found: dict[str, Any] | None) -> Barrier | None:
    if found is None:
        return None
    before = found["cut before"]
    return Barrier(
        found["data version"],
        Cut.from_json(json.dumps(found["cut"])),
        None if before is None else Cut.from_json(json.dumps(before)),
        found["state"] == _COMMITTED,
        found["sinks before"],
        found.get("fault"),
    )


def _local_path(directory: str) -> str:
    if directory.startswith("file:"):
        return "/" + directory.removeprefix("file:").lstrip("/")
    if "://" in directory:
        raise ConfigurationError(
            f"the checkpoint of an aligned job is a directory that this machine has mounted, and not {directory}"
        )
    return directory


def _read(path: Path) -> dict[str, Any] | None:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError as e:
        raise CheckpointError(f"{path} isn't whole: {e}. Restore it, or start the job with a new checkpoint") from e
    return found


def _write(path: Path, fields: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        file.write(json.dumps(fields, indent=2, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    _sync(path.parent)


def _move(file: Path, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    file.replace(directory / file.name)
    _sync(directory)
    _sync(file.parent)


def _sync(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
