"""The log of an archive: which files belong to it, commit by commit.

Each commit is a file `_log/<version>.json` that is created only if it isn't there. So of two processes that commit at
the same time one is first, and the other one sees what the first did before it tries the next version. A state from
time to time (`_log/<version>.state.json`) spares reading the log from its beginning; older commits are removed then.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from headwater.consumers.archive.state import (
    ArchiveCommit,
    ArchiveState,
    commit_object,
    read_commit,
    read_state,
    state_object,
)
from headwater.errors import ConfigurationError, TerminalError, TransientError

LOG: Final = "_log"
FORMAT: Final = 1
_STATE: Final = ".state.json"
_DIGITS: Final = 20
EVERY: Final = 50
"""After so many commits the whole state is written."""


class CommitLog:
    """The log in a directory. Not thread-safe."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / LOG
        self._state = ArchiveState()

    @property
    def state(self) -> ArchiveState:
        """The archive as it was when it was read the last time."""
        return self._state

    def create(self) -> None:
        """Make the directory of the log, where there is none."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise ConfigurationError(f"{self._directory} can't be made ({e.strerror}): name another directory") from e

    @property
    def exists(self) -> bool:
        return self._directory.is_dir()

    def refresh(self) -> ArchiveState:
        """Read what others committed, and return the archive as it is now."""
        try:
            while (content := _read(self._path(self._state.version + 1))) is not None:
                self._state = self._state.apply(read_commit(content))
            self._take_newer_state()
        except (KeyError, TypeError, ValueError) as e:
            raise TerminalError(f"{self._directory} isn't the log that headwater wrote ({e!r}): restore it") from e
        except OSError as e:
            raise TransientError(f"{self._directory} can't be read: {e.strerror}") from e
        return self._state

    def _take_newer_state(self) -> None:
        """Go on from the newest written state, if the commits after the one known here are removed already."""
        while True:
            newest = max(self._states(), default=0)
            if newest <= self._state.version:
                return
            content = _read(self._state_path(newest))
            if content is None:
                continue
            self._state = read_state(content)
            while (content := _read(self._path(self._state.version + 1))) is not None:
                self._state = self._state.apply(read_commit(content))

    def commit(self, commit: ArchiveCommit) -> ArchiveState:
        """Make a commit, behind those of others.

        Raises OffsetsTakenError, and changes nothing, if another process archived its offsets or replaced its files.
        """
        content = {"format": FORMAT, **commit_object(commit)}
        while True:
            following = self._state.apply(commit)
            if self._create(following.version, content):
                break
            if self.refresh().version < following.version:
                raise TransientError(f"{self._path(following.version)} is there and can't be read")
        self._state = following
        if following.version % EVERY == 0:
            self._write_state()
        return following

    def _create(self, version: int, content: Mapping[str, Any]) -> bool:
        """Create a commit; False if there is one, or the log has gone on far beyond it."""
        target = self._path(version)
        aside = self._directory / f".{uuid4()}"
        try:
            _write(aside, {"version": version, **content})
            try:
                os.link(aside, target)
            except FileExistsError:
                return False
            finally:
                aside.unlink()
            if max(self._states(), default=0) >= version:  # its place was free because it was removed long ago
                target.unlink()
                return False
            sync_directory(self._directory)
        except OSError as e:
            raise TransientError(f"{target} can't be written: {e.strerror}") from e
        return True

    def _write_state(self) -> None:
        """Write the whole state, and remove the commits that nobody needs any more. Others may do so too."""
        before = sorted(self._states())
        aside = self._directory / f".{uuid4()}"
        with suppress(OSError):  # the log is complete without it
            _write(aside, {"format": FORMAT, **state_object(self._state)})
            aside.replace(self._state_path(self._state.version))
            sync_directory(self._directory)
            for version in before[:-1]:
                self._state_path(version).unlink(missing_ok=True)
            if before:
                self._remove_commits(before[-1])

    def _remove_commits(self, until: int) -> None:
        for path in self._directory.glob("*.json"):
            number = path.name.partition(".")[0]
            if number.isdigit() and int(number) <= until and not path.name.endswith(_STATE):
                path.unlink(missing_ok=True)

    def _states(self) -> list[int]:
        return [int(each.name.removesuffix(_STATE)) for each in self._directory.glob(f"*{_STATE}")]

    def _path(self, version: int) -> Path:
        return self._directory / f"{version:0{_DIGITS}}.json"

    def _state_path(self, version: int) -> Path:
        return self._directory / f"{version:0{_DIGITS}}{_STATE}"


def _write(path: Path, content: Mapping[str, Any]) -> None:
    with path.open("x", encoding="utf-8") as file:
        json.dump(content, file, separators=(",", ":"))
        file.flush()
        os.fsync(file.fileno())


def _read(path: Path) -> Any:
    """Return what a file holds, or None if it isn't there."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as e:
        raise TerminalError(f"{path} is damaged ({e}): restore it from a backup of the archive") from e
    if content.get("format") != FORMAT:
        raise TerminalError(f"{path} was written by a newer headwater (format {content.get('format')}): install that")
    return content


def sync_directory(directory: Path) -> None:
    """Bring a directory's entries to the disk."""
    number = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
