"""The shipper: a listener in a process of its own, which may die of anything and harms no driver."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headwater.errors import ConfigurationError, TransientError
from headwater.events import Gap
from headwater.events.health import GapReason
from headwater.listeners.bus import Bus, ListenerState
from headwater.listeners.bus.shipper import start
from tests.kit.bus.scripts import emit_all
from tests.kit.bus.shipper import CLOCK, DIE, HOLD, PlainFactory, delivered, shipper_bus, shipper_conf
from tests.kit.processes import is_alive
from tests.kit.waiting import PATIENCE, until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
_DRIVER = """
import sys, time
from pathlib import Path
from headwater.events import JobStarted, JobName
from headwater.events.jobs import JobType
from headwater.spi import Application
from tests.kit.bus.shipper import *
from tests.kit.waiting import until
place = Path(sys.argv[1])
bus = Bus.open(shipper_conf(place, spool_linger=sys.argv[2]), Application("application_1", "orders"), options=QUICK)
{emit}
print("emitted", flush=True)
{end}
"""


def gaps(count: int, first: int = 0) -> list[Gap]:
    return [Gap(reason=GapReason.OTHER, detail=str(number)) for number in range(first, first + count)]


def details(place: Path) -> list[str]:
    """Of what was delivered, the first copies."""
    return list(dict.fromkeys(each.detail for each in delivered(place)))


def pid_of(bus: Bus) -> int:
    """The process of the shipper, once it runs."""

    def found() -> int | None:
        shipper = bus.report().shipper
        assert shipper is not None
        return shipper.pid

    return until(found, "a shipper") or 0


def test_a_listener_works_in_a_process_of_its_own(tmp_path: Path) -> None:
    with shipper_bus(shipper_conf(tmp_path)) as bus:
        emit_all(bus, gaps(200))
        assert bus.flush(PATIENCE)
        pid = pid_of(bus)
        assert {each.pid for each in delivered(tmp_path)} == {pid} != {os.getpid()}
        assert details(tmp_path) == [str(number) for number in range(200)]
        (report,) = bus.report().listeners
        assert (report.name, report.durable, report.state, report.lag) == ("file", True, ListenerState.RUNNING, 0)
        assert report.acknowledged == report.acknowledged_after.count == 200
        assert bus.stop(PATIENCE)
    until(lambda: not is_alive(pid), "the end of the shipper")
    assert list((tmp_path / "spools").iterdir()) == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV, signal.SIGKILL])
def test_a_shipper_that_dies_is_started_again_and_nothing_is_lost(
    tmp_path: Path, number: signal.Signals, caplog: pytest.LogCaptureFixture
) -> None:
    with shipper_bus(shipper_conf(tmp_path)) as bus:
        emit_all(bus, gaps(50))
        (tmp_path / DIE).write_text(str(int(number)))
        emit_all(bus, gaps(50, first=50))
        assert bus.flush(PATIENCE)
        assert details(tmp_path) == [str(each) for each in range(100)]
        assert len({each.pid for each in delivered(tmp_path)}) == 2
        shipper = bus.report().shipper
        assert shipper is not None
        assert shipper.restarts == 1
        assert f"died of {number.name}" in caplog.text
        assert not [each for each in delivered(tmp_path) if each.kind != "Gap"]


def test_a_listener_that_never_comes_back_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / HOLD).touch()
    with shipper_bus(shipper_conf(tmp_path)) as bus:
        emit_all(bus, gaps(100))
        pid = pid_of(bus)
        began = time.monotonic()
        assert not bus.stop(1.5)
        assert time.monotonic() - began < PATIENCE, "the call itself never comes back"
    until(lambda: not is_alive(pid), "the end of the shipper, which doesn't linger")
    (tmp_path / HOLD).unlink()
    with shipper_bus(shipper_conf(tmp_path)) as bus:
        assert bus.ship(PATIENCE) == 1
    assert details(tmp_path) == [str(number) for number in range(100)]


def test_a_driver_that_is_killed_is_reported_at_once(tmp_path: Path) -> None:
    """By its own shipper, which sends the rest, and then ends too."""
    (tmp_path / HOLD).touch()
    emit = """
run = bus.producer.id
bus.emit(JobStarted(job=JobName(namespace="n", name="j"), run=run, job_type=JobType.BATCH))
until(lambda: bus.report().listeners[0].received, "a shipper at work: without one it is the next driver's to report")
""".strip()
    command = [sys.executable, "-c", _DRIVER.format(emit=emit, end="time.sleep(600)"), str(tmp_path), "60"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as driver:
        try:
            assert driver.stdout is not None
            assert driver.stdout.readline() == b"emitted\n"
        finally:
            driver.kill()
    (tmp_path / HOLD).unlink()
    until(lambda: list((tmp_path / "spools").iterdir()) == [], "the end of the spool")
    assert [each.kind for each in delivered(tmp_path)] == ["JobStarted", "JobStatusChanged"]
    pids = {each.pid for each in delivered(tmp_path)}
    until(lambda: not any(map(is_alive, pids)), "the end of the shipper")


def test_whoever_waits_for_a_drivers_output_does_not_wait_for_its_shipper(tmp_path: Path) -> None:
    (tmp_path / HOLD).touch()
    script = _DRIVER.format(emit="bus.emit(Gap(reason='OTHER'))", end="bus.stop(0.5)").replace(
        "from headwater.events import", "from headwater.events import Gap,"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), "60"], cwd=ROOT, capture_output=True, timeout=PATIENCE, check=True
    )
    assert done.stdout == b"emitted\n"
    assert list((tmp_path / "spools").glob("application_1-*")), "the shipper still has something to do"
    (tmp_path / HOLD).unlink()
    until(lambda: list((tmp_path / "spools").iterdir()) == [], "the end of the spool")
    assert len(details(tmp_path)) == 1


def test_without_a_process_nothing_is_sent_and_a_gap_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    with shipper_bus(shipper_conf(tmp_path)) as bus:
        emit_all(bus, gaps(1))
        until(lambda: bus.report().intake.gaps.get("OTHER") == 2, "the Gap")
        (report,) = bus.report().listeners
        assert report.state is ListenerState.FAILED
        assert "no-python can't be started" in report.last_error
        assert not bus.flush(PATIENCE)
        assert not bus.stop(1)
    monkeypatch.undo()
    with shipper_bus(shipper_conf(tmp_path)) as bus:
        assert bus.ship(PATIENCE) == 1
    own, reported = sorted(details(tmp_path), key=len)
    assert own == "0"
    assert reported.startswith("nothing is sent to file while this driver runs")
    assert reported.endswith("spark.headwater.file.isolation=thread publishes from the driver itself")


def test_a_shipper_that_cannot_import_headwater_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(start, "_import_path", lambda: [str(tmp_path), *_standard_library()])
    with shipper_bus(shipper_conf(tmp_path)) as bus:
        emit_all(bus, gaps(1))
        until(lambda: bus.report().intake.gaps.get("OTHER") == 2, "the Gap")
        until(lambda: (shipper := bus.report().shipper) and shipper.restarts > 1, "another attempt")
        (report,) = bus.report().listeners
        assert report.state is ListenerState.FAILED
        assert "can't import what this process could: ModuleNotFoundError: No module named" in report.last_error
        assert bus.report().intake.gaps["OTHER"] == 2
        assert caplog.text.count("nothing is sent to file") == 1
        with pytest.raises(TransientError, match="No module named"):
            start.check_start(PATIENCE)
        monkeypatch.undo()
        until(lambda: details(tmp_path)[:1] == ["0"], "the event, once what it needs is there again")


def _standard_library() -> list[str]:
    return [each for each in sys.path if each.endswith((".zip", "lib-dynload")) or Path(each, "json").is_dir()]


def test_what_the_spool_dropped_is_reported_by_the_driver(tmp_path: Path) -> None:
    (tmp_path / HOLD).touch()
    with shipper_bus(shipper_conf(tmp_path, spool_max_bytes="64k")) as bus:
        pid_of(bus)
        emit_all(bus, [Gap(reason=GapReason.OTHER, detail=f"{number} " + 500 * "x") for number in range(600)])
        (tmp_path / HOLD).unlink()
        until(lambda: bus.report().intake.gaps.get("SPOOL_LIMIT"), "the Gap")
        assert bus.flush(PATIENCE)
        (report,) = bus.report().listeners
        assert report.lost > 0
        came = {each.event_id for each in delivered(tmp_path)}
        assert len(came) + report.lost >= 601


def test_the_brokers_time_reaches_the_drivers_clock(tmp_path: Path) -> None:
    ahead = int((time.time() + 3600) * 1_000_000)
    (tmp_path / CLOCK).write_text(str(ahead))
    with shipper_bus(shipper_conf(tmp_path)) as bus:
        for _ in range(3):  # one alone could be wrong: the clock follows what most of them say
            emit_all(bus, gaps(1))
            assert bus.flush(PATIENCE)
        until(lambda: bus.producer.clock.now() >= ahead, "an hour ahead")


def test_secrets_are_seen_neither_in_arguments_nor_in_variables(tmp_path: Path) -> None:
    with shipper_bus(shipper_conf(tmp_path)) as bus:
        emit_all(bus, gaps(1))
        assert bus.flush(PATIENCE)
        process = Path(f"/proc/{pid_of(bus)}")
        for what in ("cmdline", "environ"):
            assert b"s3cr3t" not in (process / what).read_bytes(), what


def test_a_process_forked_from_the_driver_takes_nothing_along(tmp_path: Path) -> None:
    """Neither its end nor its stop is the driver's."""
    with shipper_bus(shipper_conf(tmp_path)) as bus:
        pid = pid_of(bus)
        forked = os.fork()
        if not forked:
            bus.stop(1)
            os._exit(0)
        os.waitpid(forked, 0)
        emit_all(bus, gaps(10))
        assert bus.flush(PATIENCE)
        assert {each.pid for each in delivered(tmp_path)} == {pid}


def test_a_plain_listener_works_in_the_driver_only(tmp_path: Path) -> None:
    with shipper_bus(shipper_conf(tmp_path, listeners=f"file={PlainFactory.__module__}:PlainFactory")) as bus:
        (fault,) = until(lambda: bus.faults, "a fault")
        assert str(fault) == (
            "file isn't durable, so it works in the driver only: set spark.headwater.file.isolation=thread"
        )
        assert bus.report().listeners[0].state is ListenerState.FAILED


def test_another_word_is_a_fault(tmp_path: Path) -> None:
    with shipper_bus(shipper_conf(tmp_path, file_isolation="fibre")) as bus:
        (fault,) = bus.faults
        assert isinstance(fault, ConfigurationError)
        assert str(fault) == (
            "spark.headwater.file.isolation: 'fibre' is neither process nor thread; what holds now is the default"
        )


def test_the_shippers_log_is_the_drivers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "headwater")
    with shipper_bus(shipper_conf(tmp_path, file_place=str(tmp_path / "nowhere"))) as bus:
        emit_all(bus, gaps(1))
        until(lambda: "listener file" in caplog.text, "a warning")
        (report,) = bus.report().listeners
        assert "FileNotFoundError" in until(lambda: bus.report().listeners[0].last_error, "an error")
        assert report.name == "file"
