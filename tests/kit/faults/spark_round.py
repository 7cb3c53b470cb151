"""A real Spark driver as the producer of a round: what it made is known by hand, from the statements it was given."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

from headwater.events import Committed, CreateTable
from headwater.events.avro import Codec
from headwater.events.keys import PRODUCER, SEQUENCE
from tests.kit.drivers import PYTHON, SESSION, Place
from tests.kit.kafka.topic_copies import Copy

TABLES: Final = 6
"""So many are made and written before the driver may die."""
JOB: Final = f"""
import os, signal, sys
import headwater.listeners
{SESSION}
doomed, note = sys.argv[1] == "doomed", open("made", "a", buffering=1)
machine = spark._jvm.java.lang.ProcessHandle.current().pid()

def make(name):
    spark.sql(f"CREATE TABLE {{name}} (id INT) USING parquet")
    spark.sql(f"INSERT INTO {{name}} VALUES (1)")
    print(name, file=note)

for number in range({TABLES}):
    make(f"t{{number}}")
assert headwater.listeners.install(spark)._tracker.emit_all(60), "not all is in the spool"
print("settled", file=note)
if doomed:
    make("late")
    os.kill(machine, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
spark.stop()
"""


class SparkVictim:
    """A driver with the kafka listener that makes tables, and dies after it if the seed wants it so."""

    def __init__(self, folder: Path, java_home: Path, conf: Mapping[str, str], seed: int) -> None:
        self._folder = folder
        folder.mkdir()
        place = Place(folder, java_home, patience=None)
        place.configure(conf)
        self.is_doomed = Random(seed).random() < 0.5
        word = "doomed" if self.is_doomed else "spared"
        self._process = place.start([PYTHON, place.script(JOB), word])

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait_until_it_tells(self) -> None:
        """Until the first table is made."""
        while self._process.poll() is None and not self._made():
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(0.05)

    def end(self) -> None:
        """It has come to its end, whichever was meant for it."""
        try:
            _, err = self._process.communicate(timeout=250)
        finally:
            self.kill()
        assert "settled" in self._made(), err[-3000:]
        assert self._process.returncode == (-9 if self.is_doomed else 0), err[-3000:]

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _made(self) -> list[str]:
        place = self._folder / "made"
        return place.read_text().split() if place.exists() else []


def check_tables(copies: Sequence[Copy]) -> None:
    """Every table was created once and committed to once, by the events on the topic, copies aside."""
    codec = Codec()
    events = {
        (copy.headers[PRODUCER], copy.headers[SEQUENCE]): codec.decode(copy.value)
        for copy in copies
        if PRODUCER in copy.headers
    }
    created = Counter(each.identifier.table for each in events.values() if isinstance(each, CreateTable))
    outputs = [output for each in events.values() if isinstance(each, Committed) for output in each.outputs]
    written = Counter(each.dataset.name.rpartition("/")[2] for each in outputs if each.dataset is not None)
    once = {f"t{number}": 1 for number in range(TABLES)}
    for made in (created, written):
        made.pop("late", None)  # the driver died too soon after it
        assert made == once, f"LOST or made up: {made} should be {once}"
