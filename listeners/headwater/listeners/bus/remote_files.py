"""A shared directory that is no path of this machine: what is asked of it, and how long anybody waits for an answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import TimeoutError as NotYetError
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar

from headwater.errors import TransientError
from headwater.listeners.bus.executor import DaemonExecutor

T = TypeVar("T")
CALL_SECONDS: Final = 30.0
"""So long one call may take: listing a directory, copying one file of a few MiB."""


class RemoteError(TransientError):
    """A file system didn't do what it was asked, or didn't answer."""


@dataclass(frozen=True)
class RemoteFile:
    """A name in a directory."""

    name: str
    size: int
    modified: float
    """Seconds since 1970, by the file system's own clock."""
    is_directory: bool


class RemoteFiles(Protocol):
    """A file system from one directory on; paths are relative to that. Whatever goes wrong is a RemoteError.

    Not more is asked than every file system of Hadoop's does, object stores too: nothing is renamed, nothing appended.
    """

    def names(self, path: str) -> list[RemoteFile]:
        """What is in a directory; nothing where there is none."""
        ...

    def put(self, source: Path, path: str) -> None:
        """Copy a local file there, in place of what is there."""
        ...

    def get(self, path: str, target: Path) -> None:
        """Copy a file to a local path that isn't there yet."""
        ...

    def write(self, path: str, data: bytes, *, replace: bool) -> bool:
        """Write a small file; False, and nothing done, where it is there already and isn't to be replaced."""
        ...

    def read(self, path: str) -> bytes | None:
        """A small file; None where it isn't there."""
        ...

    def remove(self, path: str) -> None:
        """A file, or a directory with all that is in it, if it is there."""
        ...


Connect = Callable[[str], RemoteFiles]
"""Opens the directory that a URI names. May take long, and raise anything."""


class RemoteFilesWithTimeout:
    """Another file system behind a thread of its own, so that nobody waits for it longer than he says.

    The thread is started at once: at the end of an interpreter there is none to be had. A call that doesn't come back
    holds up the ones after it, each of which is given up when its own time is over.
    """

    def __init__(self, uri: str, connect: Connect) -> None:
        self.uri = uri
        self._connect = connect
        self._files: RemoteFiles | None = None
        self._executor = DaemonExecutor("handover", workers=1)
        self._executor.submit(int)
        self._deadline = float("inf")

    def until(self, deadline: float) -> None:
        """From now on nothing takes longer than until then."""
        self._deadline = deadline

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    def names(self, path: str) -> list[RemoteFile]:
        return self._ask("listing", path, lambda files: files.names(path))

    def put(self, source: Path, path: str) -> None:
        self._ask("writing", path, lambda files: files.put(source, path))

    def get(self, path: str, target: Path) -> None:
        self._ask("reading", path, lambda files: files.get(path, target))

    def write(self, path: str, data: bytes, *, replace: bool) -> bool:
        return self._ask("writing", path, lambda files: files.write(path, data, replace=replace))

    def read(self, path: str) -> bytes | None:
        return self._ask("reading", path, lambda files: files.read(path))

    def remove(self, path: str) -> None:
        self._ask("removing", path, lambda files: files.remove(path))

    def _ask(self, doing: str, path: str, call: Callable[[RemoteFiles], T]) -> T:
        seconds = min(CALL_SECONDS, self._deadline - time.monotonic())
        where = f"{doing} {self.uri}/{path}".rstrip("/")
        if seconds <= 0:
            raise RemoteError(f"{where}: there is no time left for it")
        try:
            future = self._executor.submit(lambda: call(self._connected()))
        except RuntimeError as e:
            raise RemoteError(f"{where}: it is closed") from e
        try:
            return future.result(seconds)
        except NotYetError as e:
            future.cancel()
            raise RemoteError(f"{where}: no answer within {seconds:.1f} s") from e
        except RemoteError:
            raise
        except Exception as e:  # a JVM can be gone in any way
            raise RemoteError(f"{where}: {type(e).__name__}: {e}") from e

    def _connected(self) -> RemoteFiles:
        if self._files is None:
            self._files = self._connect(self.uri)
        return self._files
