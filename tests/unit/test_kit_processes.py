"""What a test starts ends with it."""

from __future__ import annotations

import subprocess

from tests.kit.drivers import ProcessGroup
from tests.kit.processes import is_alive
from tests.kit.waiting import until


def test_a_process_that_a_test_leaves_ends_with_all_that_it_started() -> None:
    """A test that timed out left the driver of a validation and its JVM running: only what it had started itself was
    killed. Fails also if a block waits for a process that goes on."""
    shell = ["sh", "-c", "sleep 300 & echo $!; wait"]
    with ProcessGroup(shell, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        started = [process.pid, int(process.stdout.readline())]
        assert all(map(is_alive, started))
    until(lambda: not any(map(is_alive, started)), "the end of both")
