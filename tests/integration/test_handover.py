"""Handing over by real drivers, to a path and to one that only Hadoop knows, and shipping from there.

Hadoop's paths are of `viewfs`, with a mount point in a local directory: nothing that takes one for a path finds it.
"""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.cli.exits import Exit
from headwater.events.avro import Codec
from headwater.events.envelope import Event, EventId
from headwater.local import Service
from tests.kit.drivers import BIN, SESSION, Ended, Place
from tests.kit.ports import refusing_port
from tests.kit.topics import messages_of, new_topic
from tests.kit.waiting import PATIENCE

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
    (handed,) = (place.folder / "lake").glob("*.avro")
    printed, rows = headwater(place, "status")
    assert printed.code == 0, printed.err
    (row,) = [each for each in rows if each.get("driver")]
    assert (row["spool"], row["driver"]) == (f"{URI}/{handed.name}", "handed over")
    assert row["size"] == handed.stat().st_size
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
    """Its disk is still there; over there is half of a file, which is never taken for a whole one."""
    kill = (
        "import os\nfrom headwater.listeners.hadoop import HadoopDirectory\n"
        "HadoopDirectory.rename = lambda *_: os.kill(os.getpid(), 9)\n"
    )
    ended = place.python(kill + SESSION + ENDS)
    assert ended.code == -9, ended.err
    assert not list((place.folder / "lake").glob("*.avro"))
    (half,) = (place.folder / "lake").glob(".*.avro.unfinished")
    assert len(spools_of(place)) == 1
    _, rows = headwater(place, "status")
    assert {row["driver"] for row in rows if row.get("driver")} == {"left"}
    shipped = ship(place)
    assert shipped.code == Exit.DONE, shipped.err
    assert "Committed" in {kind for _, kind in kept(place)}
    assert set(lines_of(place.folder / "printed")) <= {event_id for event_id, _ in kept(place)}
    assert half.exists()
    assert spools_of(place) == []


@pytest.mark.kafka
def test_a_pod_that_ends_while_kafka_is_away_loses_nothing(kafka: Service, java_home: Path, tmp_path: Path) -> None:
    """No volume: its disk goes with it. Truth: what a plain listener of the same driver heard."""
    place, topic = Place(tmp_path, java_home, patience=None), new_topic(kafka.address, "handover")
    listener = {"spark.headwater.listeners": "kafka", "spark.headwater.kafka.topic": topic}
    shared, lines = tmp_path / "shared", (tmp_path / "conf" / "spark-defaults.conf").read_text().splitlines()
    away = {
        **listener,
        "spark.headwater.listeners": "kafka,seen:SeenFactory",
        "spark.headwater.spool.handover": str(shared),
    }
    kept = [line for line in lines if line.split()[0] not in away]
    (tmp_path / "conf" / "spark-defaults.conf").write_text("".join(f"{line}\n" for line in kept))
    place.configure(away)
    with refusing_port() as port:
        place.configure({"spark.headwater.kafka.bootstrap.servers": f"127.0.0.1:{port}"})
        ended = place.python(SESSION + ENDS)
    assert ended.code == 0, ended.err
    shutil.rmtree(tmp_path / "spool")
    (handed,) = shared.iterdir()
    there = {**listener, "spark.headwater.kafka.bootstrap.servers": kafka.address}
    flags = [flag for key, value in there.items() for flag in ("--conf", f"{key}={value}")]
    shipped = place.run(BIN / "headwater", "spool", "ship", "--from", str(shared), *flags)
    assert shipped.code == Exit.DONE, shipped.err
    assert not handed.exists()
    came = [Codec().decode(message.value() or b"") for message in messages_of(kafka.address, topic)]
    heard = [f"{event['producer']}-{event['sequence']}" for event in ended.events]
    assert {f"{event.producer}-{event.sequence}" for event in came if isinstance(event, Event)} == {*heard}
    assert {"JobStarted", "Committed", "Closed"} <= {event["kind"] for event in ended.events}


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
    assert float(ended.out.splitlines()[-1]) < PATIENCE, "two seconds for the end, and one for handing over"
    (left,) = spools_of(place)
    assert "no answer within" in ended.err
    assert left.name in ended.err
