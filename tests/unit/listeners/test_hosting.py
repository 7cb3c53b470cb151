"""How a run ended whose JVM ended by itself."""

from __future__ import annotations

import pytest

from headwater.events.jobs import JobStatus
from headwater.listeners.hosting.driver import end_of_jvm


@pytest.mark.parametrize(
    ("code", "status", "exit_code", "number"),
    [
        (0, JobStatus.FINISHED, 0, None),
        (3, JobStatus.FAILED, 3, None),
        (-9, JobStatus.KILLED, 137, 9),
        (None, JobStatus.ENDED, 1, None),
    ],
)
def test_the_exit_code_of_a_jvm_says_how_the_run_ended(
    code: int | None, status: JobStatus, exit_code: int, number: int | None
) -> None:
    ending = end_of_jvm(code)
    assert (ending.status, ending.exit_code, ending.signal) == (status, exit_code, number)
