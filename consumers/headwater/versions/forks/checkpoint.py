"""A checkpoint of Structured Streaming as files: the query's id, the offsets of its batches, and their commits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from headwater.errors import ConfigurationError, TerminalError

_METADATA: Final = "metadata"
_OFFSETS: Final = "offsets"
_COMMITS: Final = "commits"
_NO_OFFSET: Final = "-"
"""What stands for a source that gave nothing yet."""
_BY_PLACE: Final = "v1"
_BY_NAME: Final = "v2"
"""Since Spark 4.2: each line begins with the source's name."""
_COMMIT_VERSIONS: Final = ("v1", "v2")


class ForkError(TerminalError):
    """A checkpoint can't be forked as it was asked for."""


@dataclass(frozen=True)
class OffsetEntry:
    """What a file in `offsets` holds: up to where each source was planned to be read by a batch."""

    version: str
    settings: str
    """Watermark, time, and settings of the session, as a line of JSON."""
    offsets: Mapping[str, str | None]
    """By source: its number, or the name that it was given. None for one that gave nothing yet."""

    @classmethod
    def parse(cls, text: str, where: Path) -> OffsetEntry:
        version, *lines = text.split("\n")
        if version not in {_BY_PLACE, _BY_NAME} or not lines:
            raise ForkError(f"{where} is of a version that this headwater doesn't know: {version[:20]!r}")
        named = [
            line.partition(":")[::2] if version == _BY_NAME else (str(n), line) for n, line in enumerate(lines[1:])
        ]
        return cls(version, lines[0], {name: None if text == _NO_OFFSET else text for name, text in named})

    def text(self) -> str:
        offsets = {name: _NO_OFFSET if text is None else text for name, text in self.offsets.items()}
        named = [f"{name}:{text}" if self.version == _BY_NAME else text for name, text in offsets.items()]
        return "\n".join([self.version, self.settings, *named])

    def move(self, offsets: Mapping[str, str | None]) -> OffsetEntry:
        """Return the same with other offsets of some sources."""
        return replace(self, offsets={**self.offsets, **offsets})


class StreamCheckpoint:
    """The files of a query's checkpoint. Nothing here changes them."""

    def __init__(self, directory: Path) -> None:
        self.directory: Final = directory
        if not (directory / _METADATA).is_file() or not (directory / _OFFSETS).is_dir():
            raise ConfigurationError(
                f"{directory} isn't a checkpoint of a streaming query: it lacks `metadata` or `offsets`. "
                "Name what the query has as checkpointLocation"
            )

    @property
    def query_id(self) -> str:
        """The id that sinks know the query by."""
        try:
            found: str = json.loads((self.directory / _METADATA).read_text(encoding="utf-8"))["id"]
        except (ValueError, KeyError, TypeError) as error:
            raise ForkError(
                f"{self.directory / _METADATA} holds no id of a query: the checkpoint is damaged"
            ) from error
        return found

    def committed_batches(self) -> list[int]:
        """Return the batches that were committed and whose offsets are still there, the oldest first."""
        return sorted(self._numbers(_OFFSETS) & self._numbers(_COMMITS))

    def require_committed(self, batch: int) -> None:
        """Raise an error unless the batch was committed and is still there."""
        committed = self.committed_batches()
        if batch in committed:
            return
        if not committed:
            raise ForkError(f"no batch of {self.directory} has been committed yet: begin the query anew instead")
        known = f"it has the committed batches {committed[0]} to {committed[-1]}"
        if batch in self._numbers(_OFFSETS):
            raise ForkError(
                f"batch {batch} of {self.directory} hasn't been committed: the query is running it now, or was stopped "
                f"in the middle of it; {known}"
            )
        raise ForkError(f"{self.directory} has no batch {batch}: {known}, and Spark removes older ones")

    def offsets(self, batch: int) -> OffsetEntry:
        """Return the offsets of a batch."""
        path = self.directory / _OFFSETS / str(batch)
        return OffsetEntry.parse(_read(path).decode(), path)

    def commit(self, batch: int) -> bytes:
        """Return the file by which a batch was committed."""
        path = self.directory / _COMMITS / str(batch)
        content = _read(path)
        version = content.decode().split("\n")[0]
        if version not in _COMMIT_VERSIONS:
            raise ForkError(f"{path} is of a version that this headwater doesn't know: {version[:20]!r}")
        return content

    def state_ids(self, batch: int) -> Mapping[str, list[list[str]]]:
        """Return, by operator and partition, the ids of the state's files (since Spark 4.0, where that is set)."""
        lines = self.commit(batch).decode().split("\n")
        found: Mapping[str, Any] = json.loads(lines[1]) if len(lines) > 1 and lines[1].startswith("{") else {}
        return found.get("stateUniqueIds") or {}

    def _numbers(self, directory: str) -> set[int]:
        try:
            return {int(each.name) for each in (self.directory / directory).iterdir() if each.name.isdecimal()}
        except FileNotFoundError:
            return set()


def files_of(offsets: Mapping[int, OffsetEntry], commits: Mapping[int, bytes], query_id: str) -> dict[str, bytes]:
    """Return the files of a checkpoint's log, by path."""
    return {
        _METADATA: json.dumps({"id": query_id}, separators=(",", ":")).encode(),
        **{f"{_OFFSETS}/{batch}": entry.text().encode() for batch, entry in offsets.items()},
        **{f"{_COMMITS}/{batch}": content for batch, content in commits.items()},
    }


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ForkError(f"{path} isn't there any more: the running query removed it; fork at a newer batch") from None


def local_path(location: str, what: str) -> Path:
    """Return a directory of this machine; an error for one elsewhere."""
    if location.startswith("file:"):
        return Path("/" + location.removeprefix("file:").lstrip("/"))
    if "://" in location:
        raise ConfigurationError(
            f"{location} isn't on this machine: a {what} has to be in a directory that is mounted here, or be copied "
            "to one"
        )
    return Path(location).absolute()
