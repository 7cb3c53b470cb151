"""Archivers and compactions in processes of their own, killed at random: each record is in the archive once.

Two archivers share the partitions of a topic that is being filled, while files are compacted. Each is killed by SIGKILL
at a moment that the archive's directory shows: files that are being written, or a commit that was just made.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable

from headwater.cli import main
from headwater.consumers.archive.ordered_rows import Verification
from headwater.consumers.archive.table import EventArchive
from headwater.local import Service
from tests.kit.archive.records import read_all
from tests.kit.archive.topics import as_truth, send, truth
from tests.kit.seeds import rounds
from tests.kit.topics import new_topic
from tests.kit.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.kafka]
PARTITIONS = 4
KILLS = 12


class Stage:
    """A topic, an archive, and the processes that work on it."""

    def __init__(self, kafka: Service, directory: Path, random: Random) -> None:
        self.kafka = kafka
        self.directory = directory
        self.random = random
        self.topic = new_topic(kafka.address, "archive", PARTITIONS)
        self.sent = 0
        self.processes: list[subprocess.Popen[bytes]] = []

    def send(self, count: int) -> None:
        send(self.kafka.address, self.topic, range(self.sent, self.sent + count), PARTITIONS)
        self.sent += count

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "headwater.cli", "archive", *words, "--archive", str(self.directory)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.processes.append(process)
        return process

    def archiver(self) -> subprocess.Popen[bytes]:
        bus = f"kafka://{self.kafka.address}/{self.topic}"
        quick = ("--kafka", "session.timeout.ms=6000", "--flush-age", "1s", "--no-upkeep")
        return self.start("run", "--bus", bus, "--group", self.topic, *quick)

    def version(self) -> int:
        """The number of commits, by a look at the directory: nothing is read that a process could be writing."""
        return max((int(each.stem) for each in self.directory.glob("_delta_log/*.json")), default=0)

    def files(self) -> set[str]:
        return {each.name for each in self.directory.glob("day=*/*/*/*") if each.exists()}

    def wait_for_a_moment(self, process: subprocess.Popen[bytes]) -> None:
        """Until files are written, or a commit has just been made."""
        before, wants_commit = self.version(), self.random.random() < 0.5
        known = self.files()

        def has_come() -> bool:
            if process.poll() is not None:
                return True
            if wants_commit:
                return self.version() > before
            return not self.files() <= known

        until(has_come, "a flush", pause=0.001)

    def kill_all(self) -> None:
        for each in self.processes:
            each.kill()
            each.wait()


@pytest.mark.parametrize("number", [0, 1])
def test_each_record_is_archived_once_whoever_is_killed(kafka: Service, tmp_path: Path, number: int) -> None:
    stage = Stage(kafka, tmp_path / "archive", Random(rounds(2)[number]))
    try:
        play(stage)
    finally:
        stage.kill_all()
    bus = f"kafka://{kafka.address}/{stage.topic}"
    flags = ["--bus", bus, "--archive", str(stage.directory), "--group", stage.topic]
    assert main(["archive", "run", *flags, "--until-end"]) == 0
    expected = truth(kafka.address, stage.topic)
    assert len(expected) == stage.sent
    assert as_truth(read_all(stage.directory, most=1_000)) == expected
    events = DeltaTable(str(stage.directory)).to_pyarrow_table(columns=["partition", "offset"])
    assert sorted(zip(*(column.to_pylist() for column in events.columns), strict=True)) == sorted(expected)
    verification = Verification(EventArchive.open(stage.directory))
    assert list(verification.run())
    assert (verification.damages, verification.unarchived) == ([], [])


def play(stage: Stage) -> None:
    archivers = [stage.archiver(), stage.archiver()]
    compaction: subprocess.Popen[bytes] | None = None
    for _ in range(KILLS):
        stage.send(200)
        victim = stage.random.randrange(2)
        stage.wait_for_a_moment(archivers[victim])
        archivers[victim].kill()
        archivers[victim].wait()
        archivers[victim] = stage.archiver()
        if compaction is None or compaction.poll() is not None:
            compaction = stage.start("compact", "--before", "2999-01-01")
        elif stage.random.random() < 0.5:
            compaction.kill()
            compaction.wait()
    assert stage.version() > KILLS // 2
