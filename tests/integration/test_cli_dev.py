"""`headwater dev up`, `status`, `down` as a person uses them: real servers, each part killed, everything twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from sqlalchemy import create_engine

from headwater.cli.exits import Exit
from headwater.events.avro import Codec
from headwater.local.process_identity import ProcessIdentity
from tests.kit.events.written import commits

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.database, pytest.mark.long]
PATIENCE = 300.0
PARTS = ("kafka", "postgres", "writer")


class Person:
    """At a terminal of his own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        names = ("HEADWATER_KAFKA", "HEADWATER_POSTGRES", "HEADWATER_STORE")  # of whoever runs the tests
        self.environment = {name: value for name, value in os.environ.items() if name not in names}

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "headwater.cli", "dev", "-o", "json", *arguments, "--home", str(self.home)]

    def call(self, *arguments: str) -> tuple[int, dict[str, Any], str]:
        """Exit code, document, and what is said beside it."""
        ended = subprocess.run(
            self.command(*arguments),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=self.environment,
            check=False,
        )
        return ended.returncode, json.loads(ended.stdout or "{}"), ended.stderr

    def up(self) -> tuple[dict[str, str], str]:
        """Where everything is, and what was said."""
        code, document, said = self.call("up", "--detach")
        assert code == Exit.DONE, said
        return document["addresses"], said

    def status(self) -> tuple[int, dict[str, dict[str, Any]], str]:
        """Exit code, servers by name, and what is said beside them."""
        code, document, said = self.call("status")
        return code, {row["part"]: row for row in document.get("servers", [])}, said

    def until_again(self, name: str, restarts: int) -> dict[str, dict[str, Any]]:
        """Until all is well, and the part was started again so often."""
        deadline = time.monotonic() + PATIENCE
        while True:
            code, parts, said = self.status()
            if code == Exit.DONE and parts[name]["restarts"] == restarts:
                return parts
            assert time.monotonic() < deadline, (code, parts, said)

    def supervisor(self) -> int:
        return int(json.loads((self.home / "state.json").read_text())["supervisor"]["pid"])

    def figures(self) -> dict[str, Any]:
        """The writer's own."""
        figures: dict[str, Any] = self.call("status")[1]["writer"]
        return figures


@pytest.fixture
def person() -> Generator[Person]:
    """Servers of root run as somebody else, who doesn't get into pytest's directories."""
    home = Path(tempfile.mkdtemp(prefix="headwater-up-"))
    home.chmod(0o711)
    person = Person(home / "home")
    try:
        yield person
    finally:
        person.call("down", "--purge", "--yes")
        shutil.rmtree(home, ignore_errors=True)


def produce(place: dict[str, str], count: int) -> None:
    producer = Producer({"bootstrap.servers": place["KAFKA"]})
    for each in commits(count):
        producer.produce("headwater.events", Codec().encode(each))
    assert producer.flush(PATIENCE) == 0


def stored(place: dict[str, str]) -> int:
    engine = create_engine(place["HEADWATER_STORE"])
    try:
        with engine.connect() as connection:
            return int(connection.exec_driver_sql("SELECT count(*) FROM commits").scalar_one())
    finally:
        engine.dispose()


def until_stored(place: dict[str, str], count: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while stored(place) != count:
        assert time.monotonic() < deadline, f"{stored(place)} of {count} are stored"
        time.sleep(0.05)


def test_what_is_killed_comes_back_where_it_was_and_nothing_is_lost(person: Person) -> None:
    place, said = person.up()
    assert all(f"{name:<9} is ready" in said for name in PARTS)
    assert f"spark.headwater.kafka.bootstrap.servers  {place['KAFKA']}" in said
    assert f"export HEADWATER_STORE={place['HEADWATER_STORE']}" in said
    code, before, _ = person.status()
    assert (code, {row["state"] for row in before.values()}) == (Exit.DONE, {"well"})
    assert all(Path(row["log"]).exists() for row in before.values())
    produce(place, 10)
    until_stored(place, 10)

    for count, name in enumerate(PARTS, 2):
        os.kill(before[name]["process"], signal.SIGKILL)
        after = person.until_again(name, 1)
        assert after[name]["process"] != before[name]["process"]
        assert {row["part"]: row["address"] for row in after.values()} == {n: before[n]["address"] for n in before}
        produce(place, 10 * count)
        until_stored(place, 10 * count)

    again, said = person.up()
    assert "it runs already" in said
    assert again == place
    figures = person.figures()
    assert figures["ready"] == 1
    assert figures["dead_letters"] == 0


@pytest.mark.long
def test_it_is_there_again_after_its_supervisor_was_killed_and_after_a_stop(person: Person) -> None:
    place, _ = person.up()
    produce(place, 5)
    until_stored(place, 5)
    _, parts, _ = person.status()
    servers = [ProcessIdentity.of(row["process"]) for row in parts.values()]
    os.kill(person.supervisor(), signal.SIGKILL)
    code, _, said = person.status()
    assert code == Exit.FAILED
    assert "was killed: `headwater dev up` starts it again" in said

    again, _ = person.up()
    assert again == place, "Spark was told these addresses"
    assert not any(each and each.is_running for each in servers), "none of the old ones is left beside the new ones"
    assert stored(place) == 5
    assert person.status()[0] == Exit.DONE

    assert person.call("down")[0] == Exit.DONE
    assert person.status()[0] == Exit.FAILED
    assert "nothing runs" in person.call("down")[2]

    foreground = subprocess.Popen(
        person.command("up"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=person.environment
    )
    with foreground as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["addresses"] == place
        produce(place, 8)
        until_stored(place, 8)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == Exit.DONE
    assert person.status()[0] == Exit.FAILED
    assert person.call("down", "--purge", "--yes")[0] == Exit.DONE
    assert not person.home.exists()
