"""Advisory locks that end with the process that holds them, however it ends.

`flock` belongs to the open file, which a forked child shares: the child closes its copy at once, so that it neither
believes that it holds the lock nor keeps it after its parent's death. The file itself stays: removing it would let two
processes lock two files of one name.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
import weakref
from collections.abc import Callable
from pathlib import Path

from headwater.journal.errors import LockedError

_LOOKS = 200
_held: weakref.WeakSet[FileLock] = weakref.WeakSet()


class FileLock:
    """An exclusive lock on a file. `on_fork` is called in a forked child, after the lock was given up there."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.on_fork: Callable[[], None] | None = None
        self._descriptor = descriptor
        _held.add(self)

    @property
    def held(self) -> bool:
        return self._descriptor >= 0

    @classmethod
    def acquire(cls, path: Path, what: str) -> FileLock:
        """Lock now or raise a LockedError that names the holder; `what` is what the lock is for, for its message."""
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                _take(descriptor)
                if _is_at(path, descriptor):
                    _sign(descriptor)
                    return cls(path, descriptor)
            except BlockingIOError:
                holder = describe_holder(path)
                os.close(descriptor)
                raise LockedError(f"{what} is in use by {holder} (lock {path})") from None
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # its last holder removed the file between our open and our lock

    def release(self) -> None:
        _held.discard(self)
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def forget_in_child(self) -> None:
        self.release()
        if self.on_fork is not None:
            self.on_fork()


def _take(descriptor: int) -> None:
    """Lock, or raise BlockingIOError where somebody has it; not for one who only looks, as `is_locked` does."""
    for _ in range(_LOOKS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # noqa: PERF203 - once, nearly always
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # fails too, unless all others share
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            time.sleep(0.001)
        else:
            return
    raise BlockingIOError


def is_locked(path: Path) -> bool:
    """Whether somebody holds the lock right now; a file whose holder died is free."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def describe_holder(path: Path) -> str:
    """Who locked the file last, in words: it is signed for people only, the kernel alone knows whether it is held."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        holder = json.loads(path.read_bytes())
        return f"process {holder['pid']} on {holder['host']} since {holder['since']}"
    return "another process"


def pid_of_holder(path: Path) -> int | None:
    """The process that locked the file last, on whatever host; None where it didn't sign."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return int(json.loads(path.read_bytes())["pid"])
    return None


def _sign(descriptor: int) -> None:
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    text = json.dumps({"pid": os.getpid(), "host": os.uname().nodename, "since": since})
    with contextlib.suppress(OSError):  # a full disk must not keep anybody from reading what is there
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _forget_all_in_child() -> None:
    for lock in list(_held):
        lock.forget_in_child()


os.register_at_fork(after_in_child=_forget_all_in_child)
