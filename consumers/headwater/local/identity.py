"""Which process it is: ids are given out again, so an id alone may be a stranger's after a while."""

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
class Identity:
    """A process, told from every other one that has or had its id on this machine."""

    pid: int
    began: str
    """When it was started, in words of the system's own: the same for the same process only."""

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """None where there is no such process, or it has ended and nobody has asked how."""
        began = _began(pid)
        return None if began is None else cls(pid, began)

    @classmethod
    def read(cls, told: Mapping[str, object]) -> Self | None:
        """As `told` was written; None where there is nothing in it that names a process."""
        pid, began = told.get("pid"), told.get("began")
        return cls(pid, began) if isinstance(pid, int) and isinstance(began, str) else None

    def told(self) -> dict[str, object]:
        """For a file."""
        return {"pid": self.pid, "began": self.began}

    @property
    def is_there(self) -> bool:
        return _began(self.pid) == self.began

    def send(self, number: signal.Signals) -> bool:
        """Send it a signal, and no other process; False where it isn't there any more."""
        try:
            handle = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else None
        except ProcessLookupError:
            return False
        except OSError:  # a system that doesn't have it
            handle = None
        try:
            return self.is_there and _send(self.pid, handle, number)  # asked while the handle holds the id
        finally:
            if handle is not None:
                os.close(handle)

    def end(self, gentle: signal.Signals, patience: float) -> None:
        """Ask it to stop, and kill it if it hasn't by then."""
        self.send(gentle)
        if not self.wait(patience):
            self.send(signal.SIGKILL)
            self.wait(patience)

    def wait(self, patience: float) -> bool:
        """Whether it is gone, by then."""
        deadline = time.monotonic() + patience
        while self.is_there:
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
    """In ticks since the machine was started: so which start of the machine it was belongs to it."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()  # the program's name stands before it, and may hold anything
    return None if fields[0] in {"Z", "X"} else f"{_BOOT.read_text().strip()}/{fields[19]}"
