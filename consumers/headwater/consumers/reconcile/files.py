"""Reads the files of a table's log: on this machine's own disk, or in an object store through pyarrow."""

from __future__ import annotations

import gzip
import json
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from headwater.consumers.reconcile.model import TableLogError
from headwater.errors import ConfigurationError
from headwater.plugins import extra_command

_GZIP: Final = b"\x1f\x8b"


class LogFile(NamedTuple):
    """A file in a directory of a log."""

    name: str
    modified: int
    """In microseconds; 0 where the store of files doesn't say it."""


class LogFiles(Protocol):
    """The files below a table's directory. Paths are relative to it, with `/`."""

    def files_in(self, directory: str) -> list[LogFile]:
        """Return the files of a directory, without its subdirectories; none where there is no such directory."""
        ...

    def directories_in(self, directory: str) -> list[str]:
        """Return the names of the subdirectories."""
        ...

    def read(self, path: str) -> bytes | None:
        """Return a file's content; None where there is no such file, as where it was removed meanwhile."""
        ...


class LocalLogFiles:
    """Files of this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def files_in(self, directory: str) -> list[LogFile]:
        found = []
        for entry in self._entries(directory):
            with suppress(FileNotFoundError):  # it was removed meanwhile
                if entry.is_file():
                    found.append(LogFile(entry.name, entry.stat().st_mtime_ns // 1_000))
        return sorted(found)

    def directories_in(self, directory: str) -> list[str]:
        return sorted(entry.name for entry in self._entries(directory) if entry.is_dir())

    def read(self, path: str) -> bytes | None:
        try:
            return (self._root / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _entries(self, directory: str) -> list[Path]:
        try:
            return list((self._root / directory).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []


class ArrowLogFiles:
    """Files in a store that pyarrow has a file system for: s3, gs, abfs, hdfs."""

    def __init__(self, filesystem: Any, root: str) -> None:
        self._filesystem = filesystem
        self._root = root.rstrip("/")

    def files_in(self, directory: str) -> list[LogFile]:
        found = (entry for entry in self._entries(directory) if entry.is_file)
        return sorted(LogFile(each.base_name, (each.mtime_ns or 0) // 1_000) for each in found)

    def directories_in(self, directory: str) -> list[str]:
        return sorted(entry.base_name for entry in self._entries(directory) if not entry.is_file)

    def read(self, path: str) -> bytes | None:
        try:
            with self._filesystem.open_input_file(f"{self._root}/{path}") as opened:
                content: bytes = opened.read()
                return content
        except FileNotFoundError:
            return None

    def _entries(self, directory: str) -> list[Any]:
        from pyarrow.fs import FileSelector  # noqa: PLC0415 - an extra

        selector = FileSelector(f"{self._root}/{directory}", allow_not_found=True)
        return list(self._filesystem.get_file_info(selector))


def open_files(location: str) -> LogFiles:
    """Open a table's directory: a path, `file:` or the URI of an object store."""
    parts = urlsplit(location)
    if location.startswith("/"):
        return LocalLogFiles(Path(location))
    if parts.scheme == "file":
        return LocalLogFiles(Path(location.partition(":")[2].removeprefix(f"//{parts.netloc}")))
    try:
        from pyarrow.fs import FileSystem  # noqa: PLC0415 - an extra
    except ImportError:
        message = f"{location} isn't on this machine; what reads it comes with {extra_command('reconcile')}"
        raise ConfigurationError(message) from None
    try:
        filesystem, root = FileSystem.from_uri(_for_arrow(location))
    except (ValueError, OSError) as error:
        message = f"{location} can't be opened: {error}; say where its files are by --place NAMESPACE=URI"
        raise TableLogError(message) from error
    return ArrowLogFiles(filesystem, root)


def _for_arrow(location: str) -> str:
    """Return the location as Arrow spells it: the schemes that Hadoop has for S3 are one."""
    scheme, colon, rest = location.partition(":")
    return f"{'s3' if scheme in {'s3a', 's3n'} else scheme}{colon}{rest}"


def read_json(files: LogFiles, path: str) -> dict[str, Any] | None:
    """Return the JSON object of a file, which may be compressed by gzip; None where it isn't there."""
    content = files.read(path)
    if content is None:
        return None
    try:
        found = json.loads(gzip.decompress(content) if content.startswith(_GZIP) else content)
    except (ValueError, EOFError, OSError, zlib.error):
        raise TableLogError(f"{path} isn't JSON: the file may be damaged, or is being written; try again") from None
    if not isinstance(found, dict):
        raise TableLogError(f"{path} isn't what a table's log has: it holds no JSON object")
    return found
