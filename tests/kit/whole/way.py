"""Broker, writer and store for drivers that are started as users start them, and when all they told is stored."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from confluent_kafka import Consumer
from sqlalchemy import URL

from headwater.journal import StorageError
from headwater.lineage.sql import store_digest
from headwater.lineage.store import Store, open_store
from headwater.listeners.bus.spool_listing import SpoolStatus, list_spools
from tests.kit.drivers import BIN, Ended, Place
from tests.kit.spark.driver import Extensions
from tests.kit.spark.hosting import configure
from tests.kit.topics import ends_of
from tests.kit.waiting import attempts, until

PATIENCE = 600.0
"""For machines on which much else goes on."""
GROUP = "whole"


@dataclass
class Way:
    """From drivers to a store; `url` is what is asked."""

    broker: str
    topic: str
    url: str
    writer: subprocess.Popen[bytes]

    def place(self, folder: Path, java_home: Path, extensions: Extensions, **conf: str) -> Place:
        """Where drivers are started: all that is said of headwater is said in the configuration."""
        folder.mkdir()
        place = Place(folder, java_home, patience=PATIENCE)
        own = {f"spark.{key.replace('__', '.')}": value for key, value in conf.items()}
        wanted = {
            "spark.sql.warehouse.dir": "{warehouse}/spark",
            "spark.headwater.listeners": "kafka",
            "spark.headwater.spool.linger": "0",  # what is left is shipped by `ship`
            "spark.headwater.kafka.bootstrap.servers": self.broker,
            "spark.headwater.kafka.topic": self.topic,
            **own,
        }
        configure(place, extensions.packages, {**extensions.conf, **wanted})
        return settled(place)

    def submit(self, place: Place, script: str, *arguments: str) -> Ended:
        """By the spark-submit of PySpark."""
        with place.start([BIN / "spark-submit", place.script(script), *arguments]) as process:
            out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err[-3000:]
        assert "Error in sitecustomize" not in out + err, err[-3000:]
        assert "isn't ready after" not in out, "headwater leaves a job alone that it is too late for: not tested here"
        return Ended(process.returncode, out, err, [])

    def ship(self, place: Place) -> None:
        """What a busy machine's driver left in its spool, or a dead one. A shipper may outlive its driver for a moment,
        and nobody else ships what it holds."""
        until(lambda: not _is_any_held(place.folder / "spool"), "the end of whoever holds the spool", PATIENCE)
        properties = str(place.folder / "conf" / "spark-defaults.conf")
        ended = place.run(BIN / "headwater", "spool", "ship", "--properties-file", properties)
        assert ended.code == 0, ended.err

    def until_stored(self) -> None:
        """All that is on the topic, by the offsets that stand in the store."""
        client = Consumer({"bootstrap.servers": self.broker, "group.id": f"looks-{uuid4()}"})
        try:
            ends, cluster = ends_of(self.broker, self.topic), str(client.list_topics(timeout=60).cluster_id)
            with open_store(self.url, readonly=True) as store:
                for _ in attempts(lambda: f"not stored: {_missing(store, cluster, ends)}", PATIENCE, 0.05):
                    if not _missing(store, cluster, ends):
                        break
                    assert self.writer.poll() is None, "the writer has ended"
        finally:
            client.close()

    def digest(self) -> str:
        with open_store(self.url, readonly=True) as store, store.engine.connect() as connection:
            return store_digest(connection)

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """On the command line."""
        environment = {**os.environ, "HEADWATER_STORE": self.url}
        return subprocess.run(
            [BIN / "headwater", *words], env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )


def _is_any_held(spools: Path) -> bool:
    try:
        return any(each.status is not SpoolStatus.ABANDONED for each in list_spools([spools]))
    except StorageError:  # one is removed at this moment
        return True


def settled(place: Place, **conf: str) -> Place:
    """Each key once, the last one that was given, and none of a listener that isn't there: our commands are strict."""
    place.configure({f"spark.{key.replace('__', '.')}": value for key, value in conf.items()})
    file = place.folder / "conf" / "spark-defaults.conf"
    lines = {line.partition(" ")[0]: line for line in file.read_text().splitlines()}
    lines.pop("spark.headwater.seen.path", None)
    file.write_text("\n".join([*lines.values(), ""]))
    return place


def _missing(store: Store, cluster: str, ends: Mapping[int, int]) -> dict[int, int]:
    stored = {partition.number: at for partition, at in store.bulk.offsets(GROUP, cluster).items()}
    return {number: end for number, end in ends.items() if stored.get(number, 0) < end}


@contextmanager
def way_to(broker: str, url: URL) -> Generator[Way]:
    """With a writer that runs all the while, and ends well when it is told to."""
    topic, store = f"whole-{uuid4()}", url.render_as_string(hide_password=False)
    command = [
        sys.executable,
        "-m",
        "headwater.cli",
        "writer",
        "run",
        "--bus",
        f"kafka://{broker}/{topic}",
        "--group",
        GROUP,
    ]
    writer = subprocess.Popen(command, env={**os.environ, "HEADWATER_STORE": store}, stdout=subprocess.DEVNULL)
    try:
        yield Way(broker, topic, store, writer)
        writer.send_signal(signal.SIGTERM)
        assert writer.wait(PATIENCE) == 0
    finally:
        writer.kill()
        writer.wait()
