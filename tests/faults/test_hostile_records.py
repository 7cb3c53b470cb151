"""Records of any bytes on a real broker: each costs itself, and every reader of the topic goes on behind it.

No other test sends what clients don't let their callers send: names of headers that are no text, and times of old.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from headwater.cli.app import main
from headwater.journal import LocalLog
from headwater.lineage.bulk import DeadLetter
from headwater.lineage.store import open_store
from headwater.local import KafkaServer
from tests.kit.archive.records import read_all
from tests.kit.effort import examples
from tests.kit.events.hostile import FIXED, JOB, Topic, new_topic, sound
from tests.kit.forwarders.process import RECORDER
from tests.kit.raw_records import RawRecord

pytestmark = [pytest.mark.slow, pytest.mark.kafka]


def damaged(data: bytes, at: int, byte: int) -> bytes:
    """An event in which one byte is another."""
    return data[: at % len(data)] + bytes([byte]) + data[at % len(data) + 1 :]


anything = st.binary(max_size=60)
values = st.one_of(
    st.none(),
    anything,
    st.builds(damaged, st.just(sound(1).value or b""), st.integers(0, 10**4), st.integers(0, 255)),
)
names = st.one_of(anything, st.sampled_from([b"kind", b"family", b"producer", b"sequence", b"part", b"parts"]))
hostile = st.builds(
    RawRecord,
    values,
    st.one_of(st.none(), anything),
    st.lists(st.tuples(names, st.one_of(st.none(), anything)), max_size=4).map(tuple),
    st.integers(-(2**62), int(time.time() * 1_000)),
)


class Readers:
    """Every reader of a topic, each to its end."""

    def __init__(self, topic: Topic, folder: Path, answer: Callable[[], str]) -> None:
        """`answer` returns what the last command printed."""
        self._topic = topic
        self._folder = folder
        self._sound = set(range(1, topic.sound + 1))
        self._answer = answer
        folder.mkdir()

    def check_all(self) -> None:
        """Each reads all of the topic, and finds what the others find."""
        self.write()
        archive = self.archive()
        for number, source in enumerate((self._topic.bus, f"archive:{archive}")):
            rebuilt = self._folder / f"rebuilt-{number}.db"
            self._run("replay", "--store", str(rebuilt), "--from", source)
            assert in_store(rebuilt) == in_store(self._folder / "store.db"), source
        sent = {int(line.split()[0].rpartition("-")[2]) for line in self.forward().splitlines()}
        assert self._sound <= sent
        self.show()
        planned = self._run("forward", "plan", "one", "--table", "*", "--bus", self._topic.bus, *self._options())
        assert "Committed" in planned

    def write(self) -> None:
        store = self._folder / "store.db"
        self._run("writer", "run", "--store", str(store), "--bus", self._topic.bus, "--until-end")
        stored, letters = in_store(store)
        assert self._sound <= stored
        assert all(each % 2 == 0 for each in letters), "an event became a dead letter"

    def archive(self) -> Path:
        archive = self._folder / "archive"
        self._run("archive", "run", "--bus", self._topic.bus, "--archive", str(archive), "--until-end")
        assert [each.offset for each in read_all(archive, most=1_000)] == list(range(2 * self._topic.sound))
        self._run("archive", "verify", "--archive", str(archive))
        return archive

    def forward(self) -> str:
        """Return what the target has."""
        self._run("forward", "run", "one", "--bus", self._topic.bus, "--until-end", *self._options())
        self._run("dead-letter", "list", "--of", "forwarder:one", *self._options()[:2])
        return (self._folder / "target").read_text()

    def show(self) -> None:
        """Show the same records out of a local log."""
        log = self._folder / "log"
        with LocalLog.open(log).writer() as journal:
            for each in read_all(self._folder / "archive", most=1_000):
                journal.append(each.data, key=each.key or b"", headers=each.headers)
        for output in ("text", "json"):
            shown = self._run("-o", output, "events", "cat", "--from", f"log:{log}")
            assert len(shown.splitlines()) == 2 * self._topic.sound
        self._run("events", "cat", "--from", f"log:{log}", "--job", "etl*", "--since", "2000-01-01")

    def _options(self) -> list[str]:
        target = f"one.file={self._folder / 'target'}"
        return ["--state", str(self._folder / "state"), "--option", f"one.type={RECORDER}", "--option", target]

    def _run(self, *words: str) -> str:
        assert main(words) == 0, words
        return self._answer()


def in_store(place: Path) -> tuple[set[int], dict[int, DeadLetter]]:
    """The barriers of the commits, and the dead letters by their offsets."""
    with open_store(f"sqlite:///{place}") as store:
        with store.engine.connect() as connection:
            statement = text("SELECT DISTINCT barrier FROM commits WHERE job = :job")
            stored = set(connection.execute(statement, {"job": JOB}).scalars())
        return stored, {each.position: each for _, each in store.bulk.dead_letters()}


@pytest.mark.parametrize("time_type", ["LogAppendTime", pytest.param("CreateTime", marks=pytest.mark.long)])
def test_every_reader_of_a_topic_goes_on_behind_what_is_no_text(
    kafka: KafkaServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], time_type: str
) -> None:
    topic = new_topic(kafka, FIXED, time_type)
    Readers(topic, tmp_path / topic.name, lambda: capsys.readouterr().out).check_all()


@pytest.mark.long
@given(st.lists(hostile, min_size=1, max_size=8))
@settings(max_examples=examples(4), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_reader_of_a_topic_goes_on_behind_any_record(
    kafka: KafkaServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], records: list[RawRecord]
) -> None:
    topic = new_topic(kafka, records)
    Readers(topic, tmp_path / topic.name, lambda: capsys.readouterr().out).check_all()
