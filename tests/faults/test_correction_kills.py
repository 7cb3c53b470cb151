"""Correctors that are killed by signal 9, or taken over, while their jobs run on the mirrors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from headwater.versions.correction.execution.reruns import JobRunner
from headwater.versions.correction.execution.tables import CorrectionError
from tests.kit.versions.kill_rounds import VICTIMS, KillRounds, play_rounds
from tests.kit.waiting import until

pytestmark = [pytest.mark.slow]

SAMPLE = {
    "switch": ("after commit of Iceberg", "after commit of Delta"),
    "correction": (
        "after begin mirror",
        "within run job",
        "after run take-over",
        "after switch commit",
        "after abort removal",
        "after rollback commit",
    ),
}
JOB = """
import os, sys, threading
from pathlib import Path
place = Path(sys.argv[1])
place.with_suffix(".new").write_text(str(os.getpid()))
place.with_suffix(".new").rename(place)
threading.Event().wait()
"""
CORRECTOR = """
import sys
from headwater.versions.correction.execution.reruns import JobRunner
JobRunner().run("c-20260301-orders-4f2a", "job", sys.argv[1], [], [], checkpoints={})
"""


@pytest.fixture
def command(tmp_path: Path) -> str:
    """A job that says its process id, and then goes on for ever."""
    (tmp_path / "job.py").write_text(JOB)
    return f"{tmp_path / 'job.py'} {tmp_path / 'pid'}"


def job_in(place: Path) -> int:
    until((place / "pid").exists, "the job's process")
    return int((place / "pid").read_text())


def is_running(process: int) -> bool:
    """Return whether a process is there; one that has ended may not have been waited for by anybody."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_a_job_ends_with_its_corrector_that_is_killed(command: str, tmp_path: Path) -> None:
    """The next corrector runs the job anew: one that went on would write the same mirrors beside it."""
    with subprocess.Popen([sys.executable, "-c", CORRECTOR, command]) as corrector:
        job = job_in(tmp_path)
        assert is_running(job)
        corrector.send_signal(signal.SIGKILL)
    try:
        until(lambda: not is_running(job), "the end of the job")
    finally:
        with suppress(ProcessLookupError):
            os.kill(job, signal.SIGKILL)


def test_a_job_ends_when_another_process_takes_its_correction_over(command: str, tmp_path: Path) -> None:
    seen = (tmp_path / "pid").exists
    with pytest.raises(CorrectionError, match="its process ended before it was through"):
        JobRunner().run(
            "c-20260301-orders-4f2a", "job", command, [], [], checkpoints={}, should_continue=lambda: not seen()
        )
    assert not is_running(job_in(tmp_path))


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", VICTIMS)
def test_the_end_is_the_same_whoever_is_killed(name: str, tmp_path: Path) -> None:
    """A few points of each command, in real processes; `tests.benchmarks.correction_rounds` plays all of them."""
    rounds = KillRounds(VICTIMS[name], tmp_path)
    rounds.begin()
    play_rounds(rounds, [(point, 1) for point in SAMPLE[name]], print, lambda: True)
    assert rounds.ends == 0, "a point wasn't reached"
