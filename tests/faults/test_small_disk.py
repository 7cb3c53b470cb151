"""A driver whose disk is full, out of names, forbidden or gone, in a process of its own on a file system of its own.

What was reported and what was refused is what the driver itself was answered; the Gaps have to say exactly that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.bus.left_spools import ROOT
from tests.kit.faults.small_disk import on_small_disk
from tests.kit.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.sample(6)]
SIZE, NAMES = 1 << 20, 60
Start = Callable[..., "Driver"]


class Driver:
    """Does what it is asked, and answers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.emitted: list[str] = []
        self.refused = 0
        self._answer()

    def do(self, method: str, *arguments: object) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([method, *arguments]) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"it ended with {self.process.wait()}"
        return json.loads(line)

    def tell(self, count: int) -> int:
        """How many were refused."""
        emitted = self.do("tell", count)
        self.emitted += emitted
        self.refused += count - len(emitted)
        return count - len(emitted)

    def tell_until_refused(self) -> None:
        for _ in range(200):
            if self.tell(50):
                return
        raise AssertionError("the disk isn't full, and this shows nothing")

    def all_arrived(self) -> bool:
        return {*self.emitted} <= {*self.do("arrived")}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a driver whose small disk is `disk`; its spools are there unless that is said."""
    processes: list[subprocess.Popen[str]] = []
    (tmp_path / "disk").mkdir()

    def begin(spools: str = "disk/spools", shared: str = "", **keys: str) -> Driver:
        places = [str(tmp_path / each) if each else "" for each in ("disk", spools, shared)]
        command = on_small_disk(tmp_path / "disk", SIZE, NAMES, ["tests.kit.bus.disk_victim", *places])
        (tmp_path / "temporary").mkdir(exist_ok=True)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path / "temporary")}
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        driver = Driver(process)
        driver.do("open", keys) if keys.pop("opened", "yes") == "yes" else None
        return driver

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def failed(driver: Driver) -> list[dict[str, Any]]:
    return [gap for gap in driver.do("gaps") if gap["reason"] == "SPOOL_FAILED"]


def test_a_disk_that_fills_up_again_and_again(start: Start) -> None:
    """Each time the first refusal is reported out of the room set aside; at last the Gaps say just how many there
    were."""
    driver = start()
    driver.do("gate", False)
    for full in range(1, 4):
        driver.tell(20)
        driver.do("fill", 24 << 10)
        driver.tell_until_refused()
        refused = driver.tell(40)
        assert refused == 40, "there is room for nothing but the Gap"
        assert driver.do("dropped") == {"spool": driver.refused}
        driver.do("free")
        assert driver.tell(5) == 0, f"it takes records again, for the {full}. time"
    driver.do("gate", True)
    assert driver.do("flush", 60)
    assert driver.all_arrived()
    gaps = failed(driver)
    assert [gap["missed"] for gap in gaps].count(None) == 3, "announced when it began, each time"
    assert all("No space left on device" in gap["detail"] for gap in gaps if gap["missed"] is None)
    assert sum(gap["missed"] or 0 for gap in gaps) == driver.refused > 120
    sequences = driver.do("sequences")
    assert sequences == list(range(1, len(sequences) + 1)), "what was refused leaves no hole"


def test_a_limit_that_is_reached_on_a_disk_that_is_full(start: Start) -> None:
    """Accepted and dropped at the limit, or refused: each event is in one Gap, or it has arrived."""
    driver = start(**{"spool.max.bytes": "64k"})
    driver.do("gate", False)
    assert driver.tell(1000) == 0
    driver.do("fill", 0)
    driver.tell_until_refused()
    driver.tell(30)
    driver.do("free")
    assert driver.tell(10) == 0
    driver.do("gate", True)
    assert driver.do("flush", 60)
    until(lambda: any(gap["reason"] == "SPOOL_LIMIT" for gap in driver.do("gaps")))
    assert driver.do("flush", 60)
    sequences = driver.do("sequences")
    missing = {*range(1, max(sequences) + 1)} - {*sequences}
    dropped = {each for each in driver.emitted if each not in {*driver.do("arrived")}}
    assert len(dropped) > 100
    assert {int(each.rpartition("-")[2]) for each in dropped} <= missing
    limit = [gap["missed"] for gap in driver.do("gaps") if gap["reason"] == "SPOOL_LIMIT"]
    assert limit == [len(missing)], "once, though it grew while the listener was away"
    assert sum(gap["missed"] or 0 for gap in failed(driver)) == driver.refused


def test_a_cursor_that_cannot_be_noted(start: Start) -> None:
    """Events go on arriving, and would come again."""
    driver = start()
    driver.do("gate", True)
    driver.tell(20)
    assert driver.do("flush", 60)
    driver.do("use_up_names")
    noted = driver.do("positions")["mine"]
    driver.tell(10)
    until(driver.all_arrived)
    assert driver.do("positions")["mine"] == noted
    driver.do("free")
    driver.tell(1)
    until(lambda: driver.do("positions")["mine"] >= len(driver.emitted))


def test_no_name_is_left_on_the_device(start: Start) -> None:
    """A new segment can't be begun, but where the room set aside gave its own name back."""
    driver = start(**{"spool.max.bytes": "64k"})
    driver.do("gate", False)
    driver.tell(10)
    driver.do("use_up_names")
    driver.tell_until_refused()
    driver.tell(20)
    driver.do("free")
    assert driver.tell(5) == 0
    driver.do("gate", True)
    assert driver.do("flush", 60)
    gaps = failed(driver)
    assert sum(gap["missed"] or 0 for gap in gaps) == driver.refused
    assert driver.all_arrived()


@pytest.mark.parametrize("how", ["fill", "use_up_names"])
def test_a_disk_that_is_full_when_the_driver_begins(start: Start, tmp_path: Path, how: str) -> None:
    """Its spool is elsewhere then, and the next driver finds it there."""
    driver = start(opened="no")
    driver.do(how, *([0] if how == "fill" else []))
    spool = driver.do("open", {})
    assert spool is not None
    assert Path(spool).is_relative_to(tmp_path / "temporary")
    driver.do("gate", True)
    assert driver.tell(20) == 0
    assert driver.do("flush", 60)
    assert driver.all_arrived()
    assert driver.do("stop", 60)
    assert not [name for name in driver.do("names", "spools") if name.endswith((".segment", "lock"))], "no rest of it"


def test_there_is_no_room_where_it_is_handed_over_to(start: Start, tmp_path: Path) -> None:
    """The spool stays where it is, and nothing of it is over there."""
    driver = start("spools", "disk/shared", **{"spool.handover": str(tmp_path / "disk" / "shared")})
    driver.do("gate", False)
    driver.tell(3000)
    driver.do("fill", 16 << 10)
    assert not driver.do("stop", 2)
    assert not [name for name in driver.do("names", "shared") if name.endswith(".avro")]
    (left,) = (tmp_path / "spools").glob("*/*0.segment")
    assert left.stat().st_size > 16 << 10


def test_nothing_may_be_made_in_the_spool_any_more(start: Start) -> None:
    """What is open is written on; a new segment isn't, and cursors stay, until it may be done again."""
    driver = start(**{"spool.max.bytes": "64k"})
    driver.do("gate", True)
    driver.tell(10)
    assert driver.do("flush", 60)
    driver.do("forbid")
    driver.tell_until_refused()
    driver.tell(20)
    until(driver.all_arrived)
    driver.do("allow")
    assert driver.tell(5) == 0
    assert driver.do("flush", 60)
    until(driver.all_arrived)
    gaps = failed(driver)
    assert sum(gap["missed"] or 0 for gap in gaps) == driver.refused > 20
    assert "Permission denied" in gaps[-1]["detail"]


def test_the_spool_is_removed_under_its_driver(start: Start) -> None:
    """Who reads it has it open; what can't be written any more is refused, and reported to nobody but in the log."""
    driver = start(**{"spool.max.bytes": "64k"})
    driver.do("gate", True)
    driver.tell(10)
    assert driver.do("flush", 60)
    driver.do("remove_spool")
    driver.tell_until_refused()
    until(driver.all_arrived)
    assert not driver.do("stop", 2), "something was refused"


def test_killed_on_a_full_disk(start: Start) -> None:
    """The next driver on that disk, which is still full, delivers all that was accepted, and that something wasn't."""
    driver = start()
    driver.do("gate", False)
    driver.do("fill", 24 << 10)
    driver.tell_until_refused()
    driver.do("die")  # what answers now is the next one
    driver.do("gate", True)
    assert driver.do("open", {}) is not None
    until(driver.all_arrived)
    assert [gap["missed"] for gap in failed(driver)] == [None], (
        "that something is missing is reported, and not how much"
    )
