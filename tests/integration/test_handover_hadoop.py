"""Handing over to a path that only Hadoop knows, by real drivers, and shipping from there.

The paths are of `viewfs`, with a mount point in a local directory: nothing that takes such a URI for a path finds it.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.cli.exits import Exit
from headwater.events.envelope import EventId
from tests.kit.drivers import BIN, SESSION, Ended, Place

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.long]
PARTS = '''
from headwater.errors import TransientError


class Away:
    """Its target is away; what it would have got stands in a file."""

    def __init__(self, told):
        self.told = told

    def handle(self, batch):
        with open(self.told, "a") as file:
            file.writelines(f"{record.event_id}\\n" for record in batch)
        raise TransientError("the broker is away")

    def flush(self, timeout): ...

    def close(self, timeout):
        return False


class Keeping(Away):
    def handle(self, batch):
        with open(self.told, "a") as file:
            file.writelines(f"{record.event_id} {record.kind}\\n" for record in batch)
        return batch.end


class AwayFactory:
    def create(self, context):
        return Away(context.configuration["told"])


class KeepingFactory:
    def create(self, context):
        return Keeping(context.configuration["kept"])
'''
ENDS = "import headwater.listeners\nspark.range(3).write.saveAsTable('t')\n"
URI = "viewfs://lake/spools"


@pytest.fixture
def place(tmp_path: Path, java_home: Path) -> Place:
    place = Place(tmp_path, java_home, patience=None)  # listeners are away, and an end would wait for them
    (tmp_path / "parts.py").write_text(PARTS)
    place.configure(
        {
            "spark.headwater.listeners": "audit=parts:AwayFactory",
            "spark.headwater.audit.told": str(tmp_path / "printed"),
            "spark.headwater.audit.kept": str(tmp_path / "kept"),
            "spark.headwater.spool.handover": URI,
            "spark.hadoop.fs.viewfs.mounttable.lake.link./spools": (tmp_path / "lake").as_uri(),
        }
    )
    defaults = tmp_path / "conf" / "spark-defaults.conf"
    lines = defaults.read_text().splitlines(keepends=True)
    defaults.write_text("".join(line for line in lines if "seen" not in line))  # a file that names no key twice
    (tmp_path / "lake").mkdir()
    return place


def headwater(place: Place, action: str, *flags: str) -> tuple[Ended, list[dict[str, Any]]]:
    command = ["--output", "json", "spool", action]
    ended = place.run(
        BIN / "headwater", *command, "--properties-file", str(place.folder / "conf" / "spark-defaults.conf"), *flags
    )
    document = json.loads(ended.out) if ended.out else {}
    return ended, [row for each in document.values() for row in (each if isinstance(each, list) else [each])]


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def spools_of(place: Place) -> list[Path]:
    return [each for each in (place.folder / "spool").iterdir() if list(each.glob("*.segment"))]


def kept(place: Place) -> Iterator[tuple[EventId | str, str]]:
    for line in lines_of(place.folder / "kept"):
        event_id, kind = line.split()
        yield event_id, kind


def ship(place: Place) -> Ended:
    return headwater(place, "ship", "--conf", "spark.headwater.listeners=audit=parts:KeepingFactory")[0]


def test_what_a_driver_hands_over_is_shipped_from_there(place: Place) -> None:
    ended = place.python(SESSION + ENDS)
    assert ended.code == 0, ended.err
    assert spools_of(place) == [], ended.err
    (handed,) = (place.folder / "lake").iterdir()
    assert {"handover.json", "spool.json", "cursors"} <= {each.name for each in handed.iterdir()}
    printed, rows = headwater(place, "status")
    assert printed.code == 0, printed.err
    (row,) = [each for each in rows if each.get("driver")]
    assert (row["spool"], row["driver"]) == (f"{URI}/{handed.name}", "handed over")
    (waiting,) = [each for each in rows if each.get("listener")]
    shipped = ship(place)
    assert shipped.code == Exit.DONE, shipped.err
    assert list((place.folder / "lake").iterdir()) == []
    kinds = [kind for _, kind in kept(place)]
    assert waiting["waiting"] == len(kinds)
    assert kinds[0] == "JobStarted"
    assert kinds[-1] == "Closed"
    assert "Committed" in kinds
    assert set(lines_of(place.folder / "printed")) <= {event_id for event_id, _ in kept(place)}
    assert spools_of(place) == []


@pytest.mark.long
def test_a_driver_that_is_killed_while_it_hands_over(place: Place) -> None:
    """Its disk is still there; over there is half of a spool, which is never taken for one."""
    kill = (
        "import os\nfrom headwater.listeners.hadoop import HadoopFiles\nput = HadoopFiles.put\n"
        "def killed(self, source, path):\n    put(self, source, path)\n"
        "    if path.endswith('.segment'): os.kill(os.getpid(), 9)\nHadoopFiles.put = killed\n"
    )
    ended = place.python(kill + SESSION + ENDS)
    assert ended.code == -9, ended.err
    (half,) = (place.folder / "lake").iterdir()
    assert list(half.glob("*.segment"))
    assert not (half / "handover.json").exists()
    (left,) = spools_of(place)
    assert left.name == half.name
    _, rows = headwater(place, "status")
    assert {row["driver"] for row in rows if row.get("driver")} == {"left", "unfinished"}
    shipped = ship(place)
    assert shipped.code == Exit.DONE, shipped.err
    assert "Committed" in {kind for _, kind in kept(place)}
    assert set(lines_of(place.folder / "printed")) <= {event_id for event_id, _ in kept(place)}
    assert (spools_of(place), list((place.folder / "lake").iterdir())) == ([], [half])


@pytest.mark.long
def test_a_file_system_that_accepts_and_never_answers(place: Place) -> None:
    """A name node that hangs, as Hadoop's own client sees it: neither the job nor its end waits longer than it may."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        conf = f".config('spark.headwater.spool.handover', 'hdfs://127.0.0.1:{port}/spools')"
        conf += ".config('spark.headwater.spool.handover.timeout', '1 s')"
        session = SESSION.replace(".getOrCreate()", f"{conf}.getOrCreate()")
        timed = "import atexit, time\nbegan = []\natexit.register(lambda: print(time.monotonic() - began[0]))\n"
        ended = place.python(timed + session + ENDS + "began.append(time.monotonic())\nraise ValueError('end')")
    assert ended.code == 1, ended.err
    assert float(ended.out.splitlines()[-1]) < 2 + 1 + 2, (
        "what an end takes, what handing over takes, and a slow machine"
    )
    (left,) = spools_of(place)
    assert "no answer within" in ended.err
    assert left.name in ended.err
