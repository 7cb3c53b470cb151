"""The watchdog ends the server it was given, and never another process that got its id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from headwater.local import watchdog

WAITS = [sys.executable, "-S", "-c", "import sys; print(flush=True); sys.stdin.read()"]
# Its child stays in its group when it ends by itself.
LEAVES_A_CHILD = """
import subprocess, sys
subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
print(flush=True)
sys.stdin.read()
"""


def started(*command: str) -> subprocess.Popen[str]:
    """A process that leads a group of its own and runs by now."""
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "GRACE_SECONDS", 0.2)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system has no pidfd")
def test_a_process_that_got_the_id_is_left_alone() -> None:
    with started(*WAITS) as server, started(*WAITS) as stranger:
        handle = watchdog.open_handle(server.pid)
        assert handle is not None
        server.kill()
        server.wait()
        watchdog.terminate(stranger.pid, handle, signal.SIGTERM)  # as if the id of the server were its id now
        os.close(handle)
        assert stranger.poll() is None
        stranger.kill()


@pytest.mark.parametrize("has_handles", [True, False])
def test_the_server_is_ended(has_handles: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_handles:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    with started(*WAITS) as server:
        handle = watchdog.open_handle(server.pid)
        assert (handle is None) is not has_handles
        watchdog.terminate(server.pid, handle, signal.SIGTERM)
        assert server.wait(60) in {-signal.SIGTERM, -signal.SIGKILL}


@pytest.mark.parametrize("has_handles", [True, False])
def test_what_the_server_started_goes_with_it(has_handles: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_handles:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    with started(sys.executable, "-S", "-c", LEAVES_A_CHILD) as server:
        assert server.stdout is not None
        server.stdout.readline()
        handle = watchdog.open_handle(server.pid)
        server.kill()
        server.wait()
        watchdog.terminate(server.pid, handle, signal.SIGTERM)
        assert server.stdout.read() == "", "the child had the other end, until it was killed"


def test_a_process_that_is_gone_has_no_handle() -> None:
    with started(*WAITS) as server:
        server.kill()
        server.wait()
        with pytest.raises(ProcessLookupError):
            watchdog.open_handle(server.pid)
