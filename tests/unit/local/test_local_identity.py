"""A process is known by more than its id: a signal never reaches a stranger that was given the id of one that ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator

import pytest

from headwater.local.process_identity import ProcessIdentity

DEAF = "import signal; signal.signal(15, signal.SIG_IGN); print(flush=True); signal.pause()"


@pytest.fixture
def child() -> Generator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-S", "-c", DEAF], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def of(pid: int) -> ProcessIdentity:
    found = ProcessIdentity.of(pid)
    assert found is not None
    return found


def test_a_process_stays_the_same_until_it_ends(child: subprocess.Popen[str]) -> None:
    known = of(child.pid)
    assert ProcessIdentity.read(known.to_dict()) == known == of(child.pid)
    assert not known.wait(0)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert known.wait(0), "it has ended, though nobody asked how"
    child.wait()
    assert known.wait(0)
    assert not known.send(signal.SIGKILL)
    assert ProcessIdentity.of(child.pid) is None


def test_nothing_is_sent_to_who_has_the_id_of_another(child: subprocess.Popen[str]) -> None:
    another = ProcessIdentity(child.pid, of(os.getpid()).start_time)
    assert not another.is_running
    assert not another.send(signal.SIGKILL)
    another.terminate(signal.SIGKILL, 0)
    assert child.poll() is None


def test_what_does_not_listen_is_killed(child: subprocess.Popen[str]) -> None:
    known = of(child.pid)
    assert known.send(signal.SIGTERM)
    assert not known.wait(0.1)
    known.terminate(signal.SIGTERM, 0.1)
    assert child.wait(60) == -signal.SIGKILL


@pytest.mark.parametrize("fields", [{}, {"pid": 1}, {"pid": "1", "start_time": "x"}, {"pid": 1, "start_time": None}])
def test_what_names_no_process_is_none(fields: dict[str, object]) -> None:
    assert ProcessIdentity.read(fields) is None
