"""Ends a server whose owner died without stopping it; run as a script, with the standard library alone.

The owner holds the other end of our standard input. A byte through it means that the server was stopped in order;
end of file means that the owner is gone, however it went. Somebody the owner forked may hold that end open after
its death, so the parent's process id is looked at too. This is used instead of PR_SET_PDEATHSIG, which fires when the
*thread* that started the server ends, is lost when a program changes its user, and exists on Linux only.

Where the system has pidfds, signals go through one: an id may be given to another process once the server has ended,
and a signal by the id would end that one.
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
TO_THE_GROUP = 1 << 2
"""PIDFD_SIGNAL_PROCESS_GROUP of Linux 6.9, for which Python has no name yet."""


def wait_for_owner(parent: int) -> bool:
    """Block until the owner says that the server was stopped (True) or is gone (False)."""
    while os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], LOOK_EVERY_SECONDS)
        if readable:
            return os.read(0, 1) != b""
    return False


def open_handle(server: int) -> int | None:
    """Return a handle (pidfd) that keeps meaning this process even when its id is given to another one.

    None where the system has no pidfd (older kernels, other systems). ProcessLookupError where the process is gone.
    """
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(server)
    except ProcessLookupError:
        raise
    except OSError:
        return None


def send(server: int, handle: int | None, number: int) -> None:
    """Send a signal through the handle; by the id where there is no handle. ProcessLookupError where it is gone."""
    if handle is None:
        os.kill(server, number)
    else:
        signal.pidfd_send_signal(handle, number)


def kill_group(server: int, handle: int | None) -> None:
    """Send SIGKILL to the server and to all that it started in its group, though the server itself may have ended."""
    if handle is not None:
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL, None, TO_THE_GROUP)
        except ProcessLookupError:
            raise
        except OSError:  # a kernel before 6.9 knows no such flag
            pass
        else:
            return
    os.killpg(server, signal.SIGKILL)


def terminate(server: int, handle: int | None, gentle: int) -> None:
    """Send the server its own signal to stop, and SIGKILL to its whole group if it doesn't listen."""
    with contextlib.suppress(ProcessLookupError):
        send(server, handle, gentle)
        patience = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < patience:
            send(server, handle, 0)
            time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        kill_group(server, handle)


def main(server: int, gentle: int, directory: str) -> None:
    """Watch over `server`; remove `directory` (if any is named) once it had to be ended."""
    try:
        handle = open_handle(server)  # while the server still waits for its owner's word, so the id is its own
    except ProcessLookupError:
        return
    if wait_for_owner(os.getppid()):
        return
    terminate(server, handle, gentle)
    if directory:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
