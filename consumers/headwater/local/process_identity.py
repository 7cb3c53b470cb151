"""Identifies a process. The operating system reuses process ids, so an id alone may belong to another process later."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from typing_extensions import Self

_PROC: Final = Path("/proc")
_BOOT: Final = _PROC / "sys/kernel/random/boot_id"
_POLL_SECONDS: Final = 0.05


@dataclass(frozen=True)
class ProcessIdentity:
    """A process, by its id and start time."""

    pid: int
    start_time: str
    """When it started, as the system reports it. No other process with this id has the same."""

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Return the identity of a running process; None if there is none, or if it is a zombie."""
        began = _began(pid)
        return None if began is None else cls(pid, began)

    @classmethod
    def read(cls, fields: Mapping[str, object]) -> Self | None:
        """Read what `to_dict` returned; None if it names no process."""
        pid, began = fields.get("pid"), fields.get("start_time")
        return cls(pid, began) if isinstance(pid, int) and isinstance(began, str) else None

    def to_dict(self) -> dict[str, object]:
        """Return the identity for a JSON file."""
        return {"pid": self.pid, "start_time": self.start_time}

    @property
    def is_running(self) -> bool:
        return _began(self.pid) == self.start_time

    def send(self, number: signal.Signals) -> bool:
        """Send a signal to exactly this process. Return False if it has ended."""
        try:
            handle = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else None
        except ProcessLookupError:
            return False
        except OSError:  # a system that doesn't have it
            handle = None
        try:
            return self.is_running and _send(self.pid, handle, number)  # asked while the handle holds the id
        finally:
            if handle is not None:
                os.close(handle)

    def terminate(self, gentle: signal.Signals, patience: float) -> None:
        """Ask it to stop, and kill it if it hasn't ended in time."""
        self.send(gentle)
        if not self.wait(patience):
            self.send(signal.SIGKILL)
            self.wait(patience)

    def wait(self, patience: float) -> bool:
        """Wait until it has ended. Return False on a timeout."""
        deadline = time.monotonic() + patience
        while self.is_running:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True


def _send(pid: int, handle: int | None, number: signal.Signals) -> bool:
    with suppress(ProcessLookupError):
        if handle is None:
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(handle, number)
        return True
    return False


def _began(pid: int) -> str | None:
    if _BOOT.exists():
        return _began_by_kernel(pid)
    asked = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, began = asked.stdout.strip().partition(" ")
    return None if not began or state.startswith("Z") else began.strip()


def _began_by_kernel(pid: int) -> str | None:
    """Return the start time in clock ticks since boot, together with the boot's id."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()  # the program's name stands before it, and may hold anything
    return None if fields[0] in {"Z", "X"} else f"{_BOOT.read_text().strip()}/{fields[19]}"
