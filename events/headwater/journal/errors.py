"""What can go wrong with a journal, each with a type of its own: where, what, and what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager

from headwater.errors import HeadwaterError, TerminalError, TransientError

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_ADVICE = {
    **dict.fromkeys(NO_ROOM, "make room on the device"),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "let it open more files (ulimit -n): a reader needs two a partition"),
    **dict.fromkeys((errno.EACCES, errno.EPERM), "give this user the right to it"),
    errno.ENOENT: "it isn't there: whoever read it to its end may have removed it",
}


class JournalError(HeadwaterError):
    """The root of all errors of this package."""


class LockedError(JournalError, TransientError):
    """Somebody else holds the writer's or the cursor's lock."""


class ClosedError(JournalError, TerminalError):
    """The journal or cursor was closed, or belongs to the process this one was forked from."""


class FormatError(JournalError, TerminalError):
    """A file is of a format that this version doesn't know; nothing in it was touched."""


class CursorError(JournalError, TerminalError):
    """A cursor's name or the position committed on it is wrong."""


class RecordTooLargeError(JournalError, TerminalError):
    """A record exceeds a limit of the journal; nothing was written."""


class StorageError(JournalError, TransientError):
    """The disk refused. `appended` records of the call are in the journal, the ones after them have to be given again.

    `unknown` is set where even that couldn't be found out: the rest may or may not come out, once.
    """

    def __init__(self, message: str, *, appended: int = 0, unknown: bool = False) -> None:
        super().__init__(message)
        self.appended = appended
        self.unknown = unknown


class StorageFullError(StorageError):
    """No room on the device; an append succeeds again as soon as there is some."""


class StorageFailedError(StorageError):
    """The device failed (EIO and its like)."""


class SyncFailedError(StorageError):
    """fsync failed: the records are in the journal and readable, but may not survive the machine."""


@contextmanager
def translate_os_errors(doing: str, path: str | os.PathLike[str]) -> Generator[None, None, None]:
    """What the kernel refuses in the with-block becomes a StorageError."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, doing, path) from error


def storage_error(
    cause: OSError, doing: str, path: str | os.PathLike[str], *, appended: int = 0, unknown: bool = False
) -> StorageError:
    """The typed error for what the kernel said while `doing` something to `path`."""
    full = cause.errno in NO_ROOM
    kind = StorageFullError if full else StorageFailedError
    advice = _ADVICE.get(cause.errno or 0, "check the device and the kernel's log")
    state = "what is in is unknown; " if unknown else f"{appended} records of this call are in; " if appended else ""
    message = f"{doing} {os.fspath(path)}: {cause.strerror or cause}; {state}{advice}"
    return kind(message, appended=appended, unknown=unknown)
