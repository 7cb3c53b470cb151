"""`headwater spool status`: what is said of spools that live and of those that were left."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from headwater.cli import main
from headwater.cli.exits import Exit
from headwater.cli.output import Age, Size, age_of
from headwater.errors import TransientError
from headwater.events import Heartbeat
from headwater.journal import Journal, JournalOptions
from headwater.listeners.bus import BusOptions
from headwater.spi import RecordBatch, SpoolPosition
from tests.kit.bus.left_spools import left_by_a_mistyped_name
from tests.kit.bus.scripts import Taking, bus_of
from tests.kit.waiting import until

DRIVER = """
import sys
from pathlib import Path
from headwater.errors import TransientError
from headwater.events import Heartbeat
from headwater.testing.examples import DRAFTS
from tests.kit.bus.scripts import Taking, bus_of
from tests.kit.waiting import until
class Away(Taking):
    def handle(self, batch):
        raise KeyError("away")
with bus_of(Path(sys.argv[1]), {"audit": lambda _: Away(), "kafka": lambda _: Taking()}) as bus:
    for draft in DRAFTS[:7]:
        assert bus.emit(draft)
    until(lambda: vars(bus)["_emitter"].spool.journal.positions()["kafka"] == 7)
    print(bus.spool, flush=True)
    sys.stdin.read()
"""


class Away(Taking):
    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        raise TransientError("away")


def status(*arguments: object) -> int:
    return main(["--output", "json", "spool", "status", *map(str, arguments)])


def answer_of(capsys: pytest.CaptureFixture[str]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.slow
def test_a_driver_that_runs_and_what_it_left_when_it_was_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began = datetime.now(timezone.utc)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", DRIVER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True
    ) as driver:
        try:
            assert driver.stdout is not None
            spool = Path(driver.stdout.readline().strip())
            assert status("--spool-dir", tmp_path) == Exit.DONE
            live = answer_of(capsys)
        finally:
            driver.kill()
    assert status("--spool-dir", tmp_path, "application_1") == Exit.DONE
    left = answer_of(capsys)
    for tables, standing in ((live, "live"), (left, "left")):
        (row,) = tables["spools"]
        assert (row["spool"], row["application"], row["name"]) == (str(spool), "application_1", "orders")
        assert row["producer"] == spool.name.removeprefix("application_1-")
        assert (row["driver"], row["records"], row["problem"]) == (standing, 7, None)
        assert (
            began - timedelta(seconds=1)
            <= datetime.fromisoformat(row["since"].replace("Z", "+00:00"))
            <= datetime.now(timezone.utc)
        )
        assert row["size"] == sum(each.stat().st_size for each in spool.iterdir() if each.is_file())
        waiting = {each["listener"]: (each["waiting"], each["dropped"]) for each in tables["waiting"]}
        assert waiting == {"audit": (7, 0), "kafka": (0, 0)}
        ages = {each["listener"]: each["oldest"] for each in tables["waiting"]}
        assert ages["kafka"] is None
        assert 0 < ages["audit"] <= (datetime.now(timezone.utc) - began).total_seconds()
    assert live["spools"][0]["what_becomes"] == "its driver delivers it"
    assert "the next driver here with audit delivers it" in left["spools"][0]["what_becomes"]


def test_the_room_that_is_taken_and_the_limits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spools = tmp_path / "spools"
    left = left_by_a_mistyped_name(spools)
    defaults = tmp_path / "spark-defaults.conf"
    defaults.write_text(f"spark.headwater.spool.dir {spools}\nspark.headwater.spool.max.bytes 1m\n")
    with bus_of(spools, {"mine": lambda _: Taking()}) as bus:
        assert bus.spool is not None
        assert status("--properties-file", defaults, "--conf", "spark.headwater.spool.max.bytes=2m") == Exit.DONE
        live = sum(each.stat().st_size for each in bus.spool.iterdir() if each.is_file())
        room = {row["directory"]: row for row in answer_of(capsys)["room"]}
    taken = sum(each.stat().st_size for each in left.iterdir() if each.is_file())
    assert (room[str(spools)]["left"], room[str(spools)]["live"]) == (taken, live)
    assert {row["limit_of_each"] for row in room.values()} == {2 << 20}, "what is said here goes before the file"
    assert {row["limit_of_all_left"] for row in room.values()} == {8 << 20}
    assert abs(room[str(spools)]["free"] - shutil.disk_usage(spools).free) < 1 << 30


def test_what_was_handed_over_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For whom it waits is read out of the file; one that headwater didn't write is listed, too."""
    shared = tmp_path / "shared"
    with bus_of(tmp_path / "pod", {"mine": lambda _: Away()}, {"spool.handover": str(shared)}) as bus:
        assert bus.emit(Heartbeat())
        producer = str(bus.producer.id)
        assert not bus.stop(0.2)
    (handed,) = shared.iterdir()
    (shared / "another.avro").write_bytes(b"Obj")
    flags = ["--spool-dir", tmp_path / "here", "--conf", f"spark.headwater.spool.handover={shared}"]
    assert status(*flags) == Exit.DONE
    tables = answer_of(capsys)
    other, row = tables["spools"]
    assert (other["driver"], row["driver"]) == ("unreadable", "handed over")
    assert (row["spool"], row["application"], row["producer"]) == (str(handed), "application_1", producer)
    (waiting,) = tables["waiting"]
    assert (waiting["spool"], waiting["listener"], waiting["waiting"]) == (str(handed), "mine", 1)
    assert "the next driver with mine takes it up" in row["what_becomes"]


def test_what_can_be_seen_at_once_of_damage_and_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A limit that was reached, a cursor and a course that can't be read, and an event the disk refused."""
    damaged = tmp_path / "damaged"
    options = JournalOptions(max_bytes=8192, segment_bytes=4096)
    with Journal.open(damaged, options) as journal, journal.cursor("mine"):
        for _ in range(12):
            journal.append(bytes(1000))
        journal.trim()
        first, end = journal.first_offset, journal.next_offset
    assert first > 0
    (damaged / "cursors" / "mine.position1").write_bytes(b"torn")
    (damaged / "progress.json").write_bytes(b"{")
    reported_of = {"application": {"id": "a", "name": "b"}, "producer": "01890a5d-ac96-774b-bcce-b302099a8057"}
    (damaged / "spool.json").write_text(json.dumps({**reported_of, "listeners": {"mine": ["JOB"]}, "refused": 3}))
    assert status("--spool-dir", tmp_path) == Exit.DONE
    tables = answer_of(capsys)
    (row,) = tables["spools"]
    for words in ("3 events were refused by the disk", "its limit was reached", "mine.position1 is", "progress.json"):
        assert words in row["problem"]
    (waiting,) = tables["waiting"]
    assert (waiting["waiting"], waiting["dropped"]) == (end - first, first)


def test_a_spool_that_is_being_shipped_is_distinguished_from_a_live_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = left_by_a_mistyped_name(tmp_path)
    passport = json.loads((left / "spool.json").read_bytes())
    (left / "spool.json").write_text(json.dumps({**passport, "pid": 1}))
    with Journal.open(left):
        assert status("--spool-dir", tmp_path) == Exit.DONE
    (row,) = answer_of(capsys)["spools"]
    assert row["driver"] == "being shipped"
    assert f"process {os.getpid()} on" in row["what_becomes"]


def test_events_that_were_refused_are_noted_beside_the_spool(tmp_path: Path) -> None:
    with bus_of(tmp_path, {"mine": lambda _: Taking()}, options=BusOptions(keep_interval=0.01)) as bus:
        assert bus.spool is not None
        passport = bus.spool / "spool.json"
        vars(bus)["_emitter"].refused.total = 2
        until(lambda: json.loads(passport.read_bytes())["refused"] == 2)
        bus.emit(Heartbeat())


def test_a_spool_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status("--spool-dir", tmp_path, "nothing") == Exit.FAILED
    assert "there is no spool nothing" in capsys.readouterr().err
    assert status("--conf", "spark.headwater.spool.max.byte=1g") == Exit.CONFIGURATION
    assert "did you mean spark.headwater.spool.max.bytes" in capsys.readouterr().err


def test_people_read_sizes_and_ages() -> None:
    assert list(map(str, (Size(0), Size(1023), Size(1536), Size(5 << 30)))) == ["0 B", "1023 B", "1.5 KiB", "5.0 GiB"]
    assert list(map(str, (Age(0.25), Age(119), Age(120), Age(7200), Age(200_000)))) == [
        "0.2 s",
        "119.0 s",
        "2 min",
        "2 h",
        "2 d",
    ]
    assert age_of(datetime.now(timezone.utc) + timedelta(days=1)) == Age(0)
