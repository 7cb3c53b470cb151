"""Rounds of writers and readers of one local log that are killed at random, and what must hold after each.

A round follows from its seed as far as a machine's scheduling lets it: what is done in which order, by whom, with which
clocks. The law: every event that was reported and acknowledged is read by every group, none of a partition's records is
passed over, first copies come in their order, copies are equal, and no commit runs ahead of what was done.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from headwater.journal.files import OS_FILES
from headwater.journal.position import committed_positions
from tests.kit.journal.log_victims import Notebook, lines_of, log_of
from tests.kit.waiting import PATIENCE, until

ROOT = Path(__file__).parents[3]
GROUPS = ("store", "forwarder")
STEPS = {"writer": 4, "kill writer": 3, "end writer": 1, "reader": 3, "kill reader": 2}
"""What is done how often."""


class Line(NamedTuple):
    """What a reader noted of a record."""

    name: str
    partition: str
    offset: int
    event: str
    key: str
    value: str


@dataclass
class Outcome:
    """What came to pass, for people."""

    seed: int
    emitted: int = 0
    records: int = 0
    partitions: int = 0
    kills: int = 0
    seconds: float = 0.0


@dataclass
class Round:
    """One directory, and the processes in it."""

    directory: Path
    seed: int
    in_order: bool
    """Clocks are true, and groups have one member at a time: then there is an order between partitions too."""
    nursery: subprocess.Popen[str]
    random: random.Random = field(init=False)
    writers: list[int] = field(default_factory=list)
    readers: dict[int, str] = field(default_factory=dict)
    born: int = 0
    kills: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def ask(self, line: str) -> int:
        assert self.nursery.stdin
        assert self.nursery.stdout
        self.nursery.stdin.write(f"{line}\n")
        self.nursery.stdin.flush()
        return int(self.nursery.stdout.readline())

    def writer(self, kind: str) -> int:
        self.born += 1
        clock = "true" if self.in_order else self.random.choice(["skewed", "true"])
        return self.ask(f"writer w{self.born} {self.random.randrange(1 << 32)} {clock} {kind}")

    def reader(self, group: str) -> int:
        self.born += 1
        return self.ask(f"reader r{self.born} {self.random.randrange(1 << 32)} {group}")

    def end(self, pid: int, how: signal.Signals) -> None:
        os.kill(pid, how)
        status = self.ask(f"wait {pid} {PATIENCE}")
        expected = -signal.SIGKILL if how is signal.SIGKILL else 0
        assert status in {expected, 0}, f"a process ended with {status}: {self.errors()}"
        self.kills += status == -signal.SIGKILL

    def errors(self) -> str:
        path = self.directory / "errors"
        return path.read_text() if path.exists() else ""

    def live(self, steps: int) -> None:
        """Begin and end processes; between two steps so many events are reported."""
        for _ in range(steps):
            self._step()
            if not self.writers:
                self.writers.append(self.writer(self.random.choice(["bus", "raw"])))
            self._await_reported(self.reported_count() + self.random.randint(5, 120))

    def _step(self) -> None:
        what = self.random.choice(
            ["writer"] * 4 + ["kill writer"] * 3 + ["end writer", "reader", "reader", "kill reader"]
        )
        if what == "writer" and len(self.writers) < 4:
            self.writers.append(self.writer(self.random.choice(["bus", "bus", "raw"])))
        elif what.endswith(" writer") and self.writers:
            victim = self.writers.pop(self.random.randrange(len(self.writers)))
            self.end(victim, signal.SIGKILL if what == "kill writer" else signal.SIGTERM)
        elif what == "reader" and len(self.readers) < 4:
            group = self.random.choice(GROUPS)
            if self.in_order and group in self.readers.values():
                return
            self.readers[self.reader(group)] = group
        elif what == "kill reader" and self.readers:
            victim = self.random.choice(list(self.readers))
            group = self.readers.pop(victim)
            self.end(victim, signal.SIGKILL)
            check_commits(self.directory, group)

    def _await_reported(self, count: int) -> None:
        until(lambda: self.reported_count() >= count, lambda: f"more that is emitted: {self.errors()}", PATIENCE, 0.002)

    def reported_count(self) -> int:
        path = self.directory / "told"
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def finish(self) -> None:
        """All end, a last one delivers what dead ones left, and each group is read to its end."""
        for pid in self.writers:
            self.end(pid, self.random.choice([signal.SIGKILL, signal.SIGTERM]))
        closer = self.writer("idle")
        self._await_shipped()
        self.end(closer, signal.SIGTERM)
        for pid in self.readers:
            self.end(pid, signal.SIGTERM)
        for group in GROUPS:
            notebook = Notebook(self.directory / f"read-{group}")
            with log_of(self.directory).group(group) as member:
                while batch := member.poll(500):
                    notebook.note(lines_of(batch, "last"))
                    member.commit(batch.positions)
                assert member.assigned == log_of(self.directory).partitions()

    def _await_shipped(self) -> None:
        """Only the closer's own spool is left."""
        (self.directory / "spools").mkdir(exist_ok=True)
        until(
            lambda: self._spools() == [f"application_w{self.born}"],
            lambda: f"dead spools aren't shipped: {self._spools()} {self.errors()}",
            PATIENCE,
        )

    def _spools(self) -> list[str]:
        """The names of those who have one. Whoever is killed while it is removed may leave a part without records."""
        found: set[str] = set()
        for spool in (self.directory / "spools").iterdir():
            with suppress(FileNotFoundError):  # it goes just now
                found.update(spool.name.partition("-")[0] for _ in spool.glob("*.segment"))
        return sorted(found)


def read_lines(directory: Path, group: str) -> list[Line]:
    path = directory / f"read-{group}"
    text = path.read_text() if path.exists() else ""
    found: list[Line] = []
    for line in text[: text.rfind("\n") + 1].splitlines():  # the last one may just be written
        name, partition, offset, event, key, value = line.split(" ")  # of a loss or an error there are more
        found.append(Line(name, partition, int(offset), event, key, value))
    return found


def check_commits(directory: Path, group: str) -> None:
    """Nothing is committed that isn't noted; what is noted is looked at last, others may be at it."""
    committed = {
        partition: committed_positions(OS_FILES, directory / "log" / partition).get(group, 0)
        for partition in log_of(directory).partitions()
    }
    noted = defaultdict[str, set[int]](set)
    for line in read_lines(directory, group):
        noted[line.partition].add(line.offset)
    for partition, position in committed.items():
        assert noted[partition].issuperset(range(position)), (
            f"{group} committed {position} of {partition}, not all read"
        )


def check(directory: Path, *, in_order: bool) -> None:
    """The law."""
    path = directory / "told"
    emitted = set(path.read_text().splitlines())
    for group in GROUPS:
        lines = read_lines(directory, group)
        missing = emitted - {line.event for line in lines}
        assert not missing, (
            f"{len(missing)} of {len(emitted)} events were acknowledged, {group} has none: {min(missing)}"
        )
        check_partitions(lines, group)
        check_copies(lines)
        check_commits(directory, group)
        if in_order:
            check_order(lines, group)


def check_partitions(lines: list[Line], group: str) -> None:
    """No record is passed over, one member has a partition at a time, and first copies are in the producer's order."""
    of = defaultdict[str, list[Line]](list)
    for line in lines:
        of[line.partition].append(line)
    for partition, found in of.items():
        firsts = list(dict.fromkeys(line.offset for line in found))
        assert firsts == list(range(len(firsts))), f"{group} didn't read all of {partition}, or not in order"
        members = [line.name for line in found]
        turns = [name for name, before in zip(members, [None, *members], strict=False) if name != before]
        assert len(turns) == len(set(turns)), f"{partition} of {group} had two members at once: {turns}"
        check_order(found, f"{group} in {partition}")


def check_order(lines: list[Line], where: str) -> None:
    """Of each producer's events with one key the first copies come in their order."""
    seen: set[str] = set()
    last: dict[tuple[str, str], int] = {}
    for line in lines:
        if line.event in seen:
            continue
        seen.add(line.event)
        producer, sequence = line.event.split("/")
        before = last.get((producer, line.key), -1)
        assert int(sequence) > before, f"{where}: {line.event} comes after {before}"
        last[producer, line.key] = int(sequence)


def check_copies(lines: list[Line]) -> None:
    values: dict[str, str] = {}
    for line in lines:
        assert values.setdefault(line.event, line.value) == line.value, f"{line.event} has two contents"


@contextmanager
def nursery(directory: Path) -> Generator[subprocess.Popen[str]]:
    """The process that forks all others; they end with it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "tests.kit.journal.log_victims", str(directory)]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # its own session: nobody else is in it


def play(directory: Path, seed: int, steps: int) -> Outcome:
    """A round from beginning to end; in every other one clocks can't be trusted, and groups have several members."""
    directory.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with nursery(directory) as process:
        this = Round(directory, seed, in_order=seed % 2 == 0, nursery=process)
        try:
            this.live(steps)
            this.finish()
            check(directory, in_order=this.in_order)
        except BaseException as error:
            error.args = (f"seed {seed}, {steps} steps, in {directory}: {error}\n{this.errors()[-2000:]}",)
            raise
    return Outcome(
        seed,
        emitted=this.reported_count(),
        records=len(read_lines(directory, GROUPS[0])),
        partitions=len(log_of(directory).partitions()),
        kills=this.kills,
        seconds=time.monotonic() - began,
    )
