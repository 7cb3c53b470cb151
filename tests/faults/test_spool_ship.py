"""Shipping what a killed driver left, by processes that are interrupted, killed, or two at the same time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.events import JobStatusChanged
from headwater.events.avro import Codec
from headwater.journal import Journal
from headwater.journal.files import OS_FILES
from headwater.listeners.bus.handover import hand_over, open_handover
from headwater.listeners.settings import Settings
from tests.kit.bus.left_spools import ROOT, killed_driver, lines_of
from tests.kit.bus.logs import records_of
from tests.kit.bus.scripts import Taking, bus_of
from tests.kit.waiting import until

pytestmark = pytest.mark.slow


def shipping(spools: Path, arrived: Path, *, delivered: int) -> subprocess.Popen[str]:
    """`headwater spool ship`, to a target that goes away after so many."""
    victim = "tests.kit.bus.victim:NotingFactory"
    conf = {"listeners": f"noting={victim}", "noting.file": str(arrived), "noting.delivered": str(delivered)}
    flags = [flag for key, value in conf.items() for flag in ("--conf", f"spark.headwater.{key}={value}")]
    return subprocess.Popen(
        [sys.executable, "-m", "headwater.cli", "spool", "ship", "--spool-dir", str(spools), *flags],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, err


def test_ctrl_c_leaves_what_is_not_delivered(tmp_path: Path) -> None:
    """Of what arrived before some may come again; of the rest nothing is missing."""
    spools, arrived = tmp_path / "spools", tmp_path / "arrived"
    emitted = killed_driver(spools, tmp_path / "victim", delivered=0, lines=1200)
    first = shipping(spools, arrived, delivered=700)
    try:
        until(lambda: len(lines_of(arrived)) == 700, "delivering a part")
        first.send_signal(signal.SIGINT)
        code, _ = ended(first)
    finally:
        first.kill()
    assert code == 130
    (left,) = spools.glob("application_7-*")
    with Journal.open(left) as journal:
        noted = journal.positions()["noting"]
    assert 0 < noted <= 700
    code, err = ended(shipping(spools, tmp_path / "rest", delivered=10**9))
    assert code == 0, err
    assert {*emitted} <= {*lines_of(arrived), *lines_of(tmp_path / "rest")}
    assert lines_of(tmp_path / "rest")[: len(emitted) - noted] == emitted[noted:], (
        "it goes on where the first one stopped"
    )
    assert not left.exists()


@pytest.mark.parametrize("kill", [False, True], ids=["both", "one killed"])
def test_two_at_once_and_one_that_is_killed(tmp_path: Path, kill: bool) -> None:
    spools = tmp_path / "spools"
    emitted = [
        line
        for number in range(3)
        for line in killed_driver(spools, tmp_path / f"victim{number}", delivered=0, lines=150)
    ]
    notes = [tmp_path / "one", tmp_path / "two"]
    both = [shipping(spools, note, delivered=10**9) for note in notes]
    if kill:
        until(lambda: any(lines_of(note) for note in notes), "delivering")
        both[0].send_signal(signal.SIGKILL)
    ends = [ended(each) for each in both]
    last = ended(shipping(spools, tmp_path / "three", delivered=10**9))
    assert last[0] == 0, (ends, last)
    arrived = {line for note in (*notes, tmp_path / "three") for line in lines_of(note)}
    assert {*emitted} <= arrived
    assert not list(spools.glob("*/*.segment"))


def test_each_shipper_makes_the_same_event(tmp_path: Path) -> None:
    """By the next driver, the command line, and out of a file handed over, each from a copy of what was left."""
    killed_driver(tmp_path / "spools", tmp_path / "victim", delivered=0, lines=80)
    (left,) = [each for each in (tmp_path / "spools").iterdir() if list(each.glob("*.segment"))]
    with Journal.open(left) as journal:
        journal.forget_cursor("noting")
        journal.cursor("log").close()
    passport = left / "spool.json"
    passport.write_text(passport.read_text().replace('"noting"', '"log"'))
    ends = [by(left, tmp_path) for by in (by_driver, by_command, out_of_a_file)]
    assert len(ends[0]) == 2, "one for each run that was open"
    assert ends[0] == ends[1] == ends[2]


def by_driver(left: Path, directory: Path) -> list[bytes]:
    spools, instances = directory / "by-driver", [Taking(), second := Taking()]
    shutil.copytree(left, spools / left.name)
    with bus_of(spools, {"log": lambda _: instances.pop(0)}) as bus:
        until(lambda: bus.report().shipped == 1, "shipping")
    return inferred([record.data for record in second.records])


def by_command(left: Path, directory: Path) -> list[bytes]:
    spools, log = directory / "by-command", directory / "log-of-command"
    shutil.copytree(left, spools / left.name)
    flags = ["--conf", "spark.headwater.listeners=log", "--conf", f"spark.headwater.log.dir={log}"]
    command = [sys.executable, "-m", "headwater.cli", "spool", "ship", "--spool-dir", str(spools), *flags]
    subprocess.run(command, check=True, timeout=60, stdout=subprocess.DEVNULL)
    return inferred([record.value for record in records_of(log)])


def out_of_a_file(left: Path, directory: Path) -> list[bytes]:
    """Handed over by who ends; then its disk is gone."""
    shared, instances = directory / "shared", [Taking(), second := Taking()]
    shutil.copytree(left, directory / "pod" / left.name)
    handover = open_handover(Settings(spool_handover=str(shared)), None)
    assert handover is not None
    assert hand_over(directory / "pod" / left.name, handover, OS_FILES)
    handover.close()
    assert not (directory / "pod" / left.name).exists()
    keys = {"spool.handover": str(shared)}
    with bus_of(directory / "elsewhere", {"log": lambda _: instances.pop(0)}, keys) as bus:
        until(lambda: bus.report().shipped == 1, "shipping")
    return inferred([record.data for record in second.records])


def inferred(values: list[bytes]) -> list[bytes]:
    """As bytes: a copy that differs in anything is another event in the same place."""
    events = [(value, Codec().decode(value)) for value in values]
    return [value for value, event in events if isinstance(event, JobStatusChanged) and event.inferred]
