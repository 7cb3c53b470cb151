"""Parts of the bus on their own."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import datetime, timezone
from pathlib import Path
from uuid import UUID

import pytest

from headwater.events import Closed, Heartbeat, JobStarted, JobStatusChanged
from headwater.events.envelope import Event, EventFamily
from headwater.events.jobs import JobStatus, JobType
from headwater.events.names import JobName
from headwater.journal.files import OS_FILES
from headwater.listeners.bus.listener_creation import DaemonExecutor
from headwater.listeners.bus.producer_progress import ProducerProgress, read_progress, write_progress
from headwater.listeners.bus.spool_manifest import ALL_FAMILIES, SpoolManifest, read_manifest
from headwater.listeners.bus.spool_reader import InvalidAcknowledgementError, OutstandingRecords
from headwater.spi import Application, SpoolPosition

TIME = datetime(2026, 3, 1, tzinfo=timezone.utc)
PRODUCER = UUID("01890a5d-ac96-774b-bcce-b302099a8057")


def stamped(draft: Event, sequence: int) -> Event:
    stamp = {"producer": PRODUCER, "sequence": sequence, "family_sequence": sequence, "time": TIME, "application": "a"}
    return draft.model_copy(update=stamp)


def course_of(*drafts: Event) -> ProducerProgress:
    course = ProducerProgress()
    for offset, draft in enumerate(drafts):
        course.note(stamped(draft, offset + 1), offset)
    return course


BEGUN = JobStarted(job_type=JobType.BATCH, run=UUID(int=1), job=JobName(name="orders"))


def test_a_course_comes_back_as_it_was_noted(tmp_path: Path) -> None:
    nameless = JobStatusChanged(status=JobStatus.RUNNING, run=UUID(int=2))
    for course in (ProducerProgress(), course_of(BEGUN, nameless, Heartbeat()), course_of(BEGUN, Closed())):
        write_progress(OS_FILES, tmp_path, course.to_json(), durable=False)
        assert read_progress(OS_FILES, tmp_path) == course
        assert course.ends() == ProducerProgress.from_json(course.to_json()).ends()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"offset": "x"}'])
def test_a_course_that_cannot_be_read_is_none(tmp_path: Path, data: bytes) -> None:
    assert read_progress(OS_FILES, tmp_path) is None
    (tmp_path / "progress.json").write_bytes(data)
    assert read_progress(OS_FILES, tmp_path) is None


def test_runs_that_did_not_end_are_told_to_have_been_killed() -> None:
    (end,) = course_of(BEGUN, Heartbeat()).ends()
    assert (end.sequence, end.family_sequence, end.time, end.application) == (3, 3, TIME, "a")
    assert (end.run, end.job, end.status, end.inferred) == (BEGUN.run, BEGUN.job, JobStatus.KILLED, True)
    ended = JobStatusChanged(run=BEGUN.run, status=JobStatus.FAILED)
    assert course_of(BEGUN, ended).ends() == ()
    assert course_of(BEGUN, Closed()).ends() == ()
    assert ProducerProgress().ends() == ()


def test_nothing_is_inferred_where_a_number_could_be_wrong() -> None:
    course = course_of(BEGUN)
    course.is_certain = False
    assert course.ends() == ()
    course.note(stamped(Heartbeat(), 9), 8)
    assert [end.sequence for end in course.ends()] == [10]


def test_a_passport_comes_back_and_a_damaged_one_says_nothing(tmp_path: Path) -> None:
    families = {"a": ALL_FAMILIES, "b": frozenset({EventFamily.CATALOG})}
    passport = SpoolManifest(Application("app/../1", "orders"), PRODUCER, families)
    assert passport.directory == f"app_.._1-{PRODUCER}"
    passport.write(OS_FILES, tmp_path)
    assert read_manifest(OS_FILES, tmp_path) == passport
    (tmp_path / "spool.json").write_text('{"listeners": 3}')
    assert read_manifest(OS_FILES, tmp_path).families == {}


def test_an_account_of_what_is_outstanding() -> None:
    account = OutstandingRecords()
    account.add(SpoolPosition(9), time=1, count=5, size=50)
    account.add(SpoolPosition(19), time=2, count=5, size=60)
    assert (account.count, account.size, account.oldest_time) == (10, 110, 1)
    assert not account.acknowledge(None)
    assert account.acknowledge(SpoolPosition(12))
    assert (account.count, account.size, account.oldest_time) == (5, 60, 2)
    for wrong in (None, SpoolPosition(11), SpoolPosition(20)):
        with pytest.raises(InvalidAcknowledgementError):
            account.acknowledge(wrong)
    account.reset()
    assert not account
    assert not account.acknowledge(SpoolPosition(12))
    with pytest.raises(InvalidAcknowledgementError):
        account.acknowledge(SpoolPosition(13))


def test_the_executor_runs_tells_errors_and_takes_nothing_once_shut_down() -> None:
    executor = DaemonExecutor("test", workers=2)
    gate = threading.Event()
    blocked = [executor.submit(gate.wait, 10) for _ in range(2)]
    waiting = executor.submit(int, "7")
    assert not waiting.done(), "there are two workers, and both wait"
    gate.set()
    assert [each.result(60) for each in blocked] == [True, True]
    assert waiting.result(60) == 7
    assert isinstance(executor.submit(int, "x").exception(5), ValueError)
    executor.shutdown()
    with pytest.raises(RuntimeError, match="its listener is closed"):
        executor.submit(int)


def test_the_executor_cancels_what_waits() -> None:
    executor, gate = DaemonExecutor("test", workers=1), threading.Event()
    executor.submit(gate.wait, 10)
    waiting = executor.submit(int)
    executor.shutdown(wait=False, cancel_futures=True)
    gate.set()
    assert waiting.cancelled()


@pytest.mark.slow
def test_a_process_ends_though_a_task_of_the_executor_does_not() -> None:
    program = (
        "import threading; from headwater.listeners.bus.listener_creation import DaemonExecutor;"
        "began = threading.Event();"
        "DaemonExecutor('x').submit(lambda: (began.set(), threading.Event().wait())); began.wait(); print('over')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "over\n"


@pytest.mark.slow
def test_the_bus_needs_no_spark() -> None:
    program = "import sys, headwater.listeners.bus; print('pyspark' in sys.modules or 'py4j' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False\n"
