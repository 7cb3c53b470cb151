"""Segments go, by bytes and by age, while processes read: each record is read or reported as lost, and none is both."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from headwater.journal import CursorStart, Fsync, Journal, JournalOptions, LocalLog
from tests.kit.journal.log_rounds import play
from tests.kit.seeds import rounds

ROOT = Path(__file__).parents[2]
HOUR = 3_600_000_000


class Reader:
    """A process that reads so much as it is asked to."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.read = defaultdict[str, set[int]](set)
        self.lost = defaultdict[str, set[int]](set)

    def poll(self, count: int) -> bool:
        """Whether there was anything."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        lines = list(iter(self._process.stdout.readline, "\n"))
        for line in lines:
            self._note(line.split())
        return bool(lines)

    def _note(self, words: list[str]) -> None:
        partition, is_lost = words[0], words[1] == "lost"
        first, last = words[1 + is_lost].split("..")
        offsets = set(range(int(first), int(last) + 1))
        assert not offsets & (self.read[partition] | self.lost[partition]), f"twice: {words}"
        assert not is_lost or words[3] == "dropped"
        (self.lost if is_lost else self.read)[partition] |= offsets


@contextmanager
def reader(directory: Path, group: str) -> Generator[Reader]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "tests.kit.journal.log_retention", str(directory), group]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Reader(process)
        finally:
            process.kill()


class World:
    """A log in which each record has the number of its offset, and a clock that is turned by hand."""

    def __init__(self, directory: Path, **limits: float) -> None:
        self.now = HOUR
        options = JournalOptions(
            fsync=Fsync.NONE,
            reserve_bytes=0,
            segment_bytes=8_000,
            clock=lambda: self.now,
            max_bytes=int(limits.get("max_bytes", 1 << 30)),
            max_age=limits.get("max_age"),
        )
        self.log = LocalLog.open(directory, options)

    def write(self, journal: Journal, count: int) -> None:
        first = journal.next_offset
        journal.append_many(
            [b"%d of an event that is as long as others " % (first + each) * 9 for each in range(count)]
        )

    def ends(self) -> Iterator[tuple[str, int]]:
        for name in self.log.partitions():
            yield name, self.log.reader(name).next_offset()


def check(world: World, found: Reader) -> None:
    """All was read or reported; what is there still was read."""
    for name, end in world.ends():
        assert found.read[name] | found.lost[name] == set(range(end))
        assert found.read[name].issuperset(range(world.log.reader(name).first_offset(), end))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "limits",
    [{"max_bytes": 64_000}, {"max_age": 60.0}],
    ids=["bytes", "age"],
)
def test_readers_that_lag_are_told_what_they_lost(tmp_path: Path, limits: dict[str, float], seed: int) -> None:
    """One reads along, another lags behind and reads in spurts: in partitions that are written to, and in one that was
    left, where others hold the limits."""
    chance = random.Random(seed)
    world = World(tmp_path, **limits)
    with ExitStack() as opened:
        quick, slow = (opened.enter_context(reader(tmp_path, each)) for each in ("quick", "slow"))
        live, left = (opened.enter_context(world.log.writer()) for _ in range(2))
        assert not slow.poll(1), "from now on all is its own"
        for turn in range(120):
            world.now += chance.randint(0, 10_000_000)
            world.write(live, chance.randint(1, 60))
            if turn < 40:
                world.write(left, chance.randint(1, 60))
            left.close() if turn == 40 else None
            quick.poll(10_000)
            if chance.random() < 0.1:
                slow.poll(chance.randint(1, 100))
            if chance.random() < 0.2:
                live.trim()
                world.log.trim()
        world.now += HOUR
        world.log.trim()
        for each in (quick, slow):
            while each.poll(10_000):
                pass
            check(world, each)
        lost = {name: len(slow.lost[name]) for name in world.log.partitions()}
        assert all(lost.values()), f"nobody lost anything, and this shows nothing: {lost}"
        assert not quick.lost[live.directory.name]


def test_what_a_group_never_saw_of_a_new_partition_is_reported(tmp_path: Path) -> None:
    """Its member was away while a driver began a partition, and its first segments went."""
    world = World(tmp_path, max_bytes=64_000)
    with world.log.writer() as first:
        world.write(first, 1)
        with world.log.group("g") as member:
            member.commit(member.poll().positions)
        with world.log.writer() as second:
            world.write(second, 2_000)
            second.trim()
            begin = second.first_offset
    with world.log.group("g") as member:
        ((partition, lost),) = member.poll().missing
        assert (partition, lost.first, lost.end_offset) == (second.directory.name, 0, begin)


def test_a_group_that_reads_from_now_on_misses_nothing_of_a_new_partition(tmp_path: Path) -> None:
    world = World(tmp_path)
    with world.log.writer() as first:
        world.write(first, 5)
        with world.log.group("g", start=CursorStart.LATEST) as member:
            assert not member.poll()
            with world.log.writer() as second:
                world.write(second, 3)
                found = [(partition, record.offset) for partition, record in member.poll().records]
            assert found == [(second.directory.name, offset) for offset in range(3)]


def test_one_that_comes_after_the_beginning_is_told_nothing(tmp_path: Path) -> None:
    """What went before a group began was never its own."""
    world = World(tmp_path, max_bytes=64_000)
    with world.log.writer() as journal:
        world.write(journal, 2_000)
        journal.trim()
        assert journal.first_offset
        for start in CursorStart:
            with world.log.group(start.value, start=start) as member:
                assert not member.poll().missing


def test_a_log_with_the_limit_of_age_alone_gets_empty_in_time(tmp_path: Path) -> None:
    """Also a partition that nobody comes back to, once somebody holds the limits."""
    world = World(tmp_path, max_age=60.0)
    with world.log.writer() as journal:
        world.write(journal, 200)
    world.now += 2 * HOUR
    assert world.log.trim()
    with world.log.group("late") as member:
        assert not member.poll()
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.segment")) == 40


# Writers and readers of one local log in processes of their own, killed at random: what is promised of a bus holds.


FIXED = (1, 2, 3)
STEPS = 25


@pytest.mark.slow
@pytest.mark.parametrize("seed", [FIXED[0], *(pytest.param(seed, marks=pytest.mark.long) for seed in FIXED[1:])])
def test_what_was_acknowledged_is_read_by_every_group(tmp_path: Path, seed: int) -> None:
    outcome = play(tmp_path, seed, STEPS)
    assert outcome.kills > 3, "nobody was in anybody's way"
    assert outcome.partitions > 1


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_it_is_in_rounds_of_other_seeds_too(tmp_path: Path, number: int) -> None:
    """What happens in them isn't known beforehand; a failure names its seed."""
    assert play(tmp_path, rounds(4)[number], STEPS).emitted > 0
