"""Ends a server whose owner died without stopping it; run as a script, with the standard library alone.

The owner holds the other end of our standard input. A byte through it means that the server was stopped in order;
end of file means that the owner is gone, however it went. Somebody the owner forked may hold that end open after
its death, so the parent's process id is looked at too. This is used instead of PR_SET_PDEATHSIG, which fires when the
*thread* that started the server ends, is lost when a program changes its user, and exists on Linux only.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import time

LOOK_EVERY_SECONDS = 1.0
GRACE_SECONDS = 5.0


def stopped_in_order(parent: int) -> bool:
    """Block until the owner says that the server was stopped (True) or is gone (False)."""
    while os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], LOOK_EVERY_SECONDS)
        if readable:
            return os.read(0, 1) != b""
    return False


def end(server: int, gentle: int) -> None:
    """Send the server its own signal to stop, and SIGKILL to its whole group if it doesn't listen."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(server, gentle)
        patience = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < patience:
            os.kill(server, 0)
            time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server, signal.SIGKILL)


def main(server: int, gentle: int, directory: str) -> None:
    """Watch over `server`; remove `directory` (if any is named) once it had to be ended."""
    if stopped_in_order(os.getppid()):
        return
    end(server, gentle)
    if directory:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
