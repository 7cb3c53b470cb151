"""Processes that write to a local log and read from it until they are killed: a program of log_rounds.

Usage: python -m tests.kit.journal.log_victims DIRECTORY. Each line on standard input asks for a process and is answered
by its id: `writer NAME SEED SKEW bus|raw|idle`, `reader NAME SEED GROUP`. `wait PID SECONDS` is answered by its status;
who doesn't end in time writes where its threads are to `errors`, and is killed. All are forked, because starting an
interpreter takes longer than a life of theirs. SIGTERM has them end as they should.

In DIRECTORY: `log`, `spools`; `told`, a line for each event that was reported and acknowledged; `read-GROUP`, one for
each record that a member was through with, which is written before it commits; `errors`.
"""

from __future__ import annotations

import faulthandler
import os
import random
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from itertools import count
from pathlib import Path

from headwater.events.clock import wall_micros
from headwater.events.envelope import Event
from headwater.events.names import JobName
from headwater.events.producer import Producer
from headwater.journal import GroupBatch, LocalLog, StorageError, options
from headwater.listeners.bus import Bus, BusOptions
from headwater.publishers import log
from headwater.publishers.log import LogFactory
from headwater.spi import Application, RecordBatch
from headwater.testing.examples import COMMITTED
from headwater.testing.listeners import record
from headwater.testing.memory import MemoryContext

FSYNC = ("none", "interval", "always")
JOBS = 3
QUICKLY = {
    (options, "_USUAL_SEGMENT"): 16 << 10,
    (log, "_INTERVAL_SECONDS"): 0.05,
}
"""Small segments, so that there are many, and hardly a moment in which no limits are held."""


class Notebook:
    """Lines of several processes, past all buffers when `note` comes back."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, lines: list[str]) -> None:
        data = "".join(f"{line}\n" for line in lines).encode()
        assert os.write(self._descriptor, data) == len(data)


def log_of(directory: Path) -> LocalLog:
    return LocalLog.open(directory / "log")


def id_of(event: Event) -> str:
    return f"{event.producer}/{event.sequence}"


def lines_of(batch: GroupBatch, name: str) -> list[str]:
    """What is noted of records: by whom, from where, which event, its key, and what its bytes were."""
    lines = [f"{name} {each.partition} lost {each.missing}" for each in batch.missing]
    for partition, each in batch.records:
        headers = dict(each.headers)
        event = f"{headers['producer'].decode()}/{headers['sequence'].decode()}"
        key = blake2b(each.key or b"", digest_size=8).hexdigest()
        value = blake2b(repr((each.key, each.headers)).encode() + each.value, digest_size=8).hexdigest()
        lines.append(f"{name} {partition} {each.offset} {event} {key} {value}")
    return lines


class StopSignal:
    """Whether SIGTERM came. Its handler runs amid what the main thread does, so it takes no lock: Event's would do."""

    def __init__(self) -> None:
        self._received, sent = os.pipe()
        signal.signal(signal.SIGTERM, lambda *_: os.write(sent, b"!"))

    def is_set(self) -> bool:
        return self.wait(0)

    def wait(self, seconds: float) -> bool:
        return bool(select.select([self._received], [], [], seconds)[0])


class Life:
    """What all victims have in common."""

    def __init__(self, directory: Path, name: str, seed: int) -> None:
        self.directory = directory
        self.name = name
        self.random = random.Random(seed)
        self.ends = StopSignal()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        for (module, what), value in QUICKLY.items():
            setattr(module, what, value)

    def skew_clock(self) -> None:
        """A clock that is an hour off at most, and is set anew now and then."""
        true, offset, left = time.time_ns, 0, 0

        def skewed() -> int:
            nonlocal offset, left
            left -= 1
            if left < 0:
                offset, left = self.random.randint(-3600, 3600) * 10**9, self.random.randint(50, 500)
            return true() + offset

        time.time_ns = skewed

    def draft(self) -> Event:
        return COMMITTED.model_copy(update={"job": JobName(name=f"job-{self.random.randrange(JOBS)}")})

    def configuration(self) -> dict[str, str]:
        return {
            "dir": str(self.directory / "log"),
            "fsync": self.random.choice(FSYNC),
            "fsync.interval": "0.05",
        }


def write_by_bus(life: Life, *, idle: bool) -> None:
    """A driver, which also ships what dead ones left; an idle one only does that."""
    emitted = Notebook(life.directory / "told")
    prefix = "spark.headwater."
    configuration = {f"{prefix}log.{key}": value for key, value in life.configuration().items()}
    configuration |= {f"{prefix}spool.dir": str(life.directory / "spools"), f"{prefix}listeners": "log"}
    pace = BusOptions(batch_count=20, commit_interval=0.05, keep_interval=0.05, look_interval=0.1)
    bus = Bus.open(configuration, Application(f"application_{life.name}", life.name), options=pace)
    while not life.ends.is_set():
        if idle:
            life.ends.wait(1)
            continue
        for _ in range(life.random.randint(1, 40)):
            emitted.note([id_of(each) for each in bus.emit(life.draft())])
        life.ends.wait(life.random.random() * 0.02)
    bus.stop(20)


def write_by_listener(life: Life) -> None:
    """The listener alone, handed what its bus would hand it; what it answers for counts as acknowledged."""
    emitted = Notebook(life.directory / "told")
    producer, stamped = Producer("application_raw"), list[Event]()
    positions, waiting = count(1), dict[int, Event]()
    with ThreadPoolExecutor(2) as executor:
        listener = LogFactory().create(MemoryContext("log", life.configuration(), executor))

        def acknowledge(answer: int | None) -> None:
            done = [position for position in waiting if answer is not None and position <= answer]
            emitted.note([id_of(waiting.pop(position)) for position in done])

        while not life.ends.is_set():
            for _ in range(life.random.randint(1, 40)):
                producer.emit(life.draft(), lambda event, _: stamped.append(event))
            batch = RecordBatch(
                tuple(record(position, event) for position, event in zip(positions, stamped, strict=False))
            )
            waiting.update(zip((each.position for each in batch), stamped, strict=True))
            stamped.clear()
            acknowledge(listener.handle(batch))
            if life.random.random() < 0.2:
                acknowledge(listener.flush(5.0))
            life.ends.wait(life.random.random() * 0.02)
        acknowledge(max(waiting, default=None) if listener.close(20.0) else None)


def read(life: Life, group: str) -> None:
    """A member of a group, which is through with a record when it has noted it."""
    notebook = Notebook(life.directory / f"read-{group}")
    with log_of(life.directory).group(group) as member:
        while not life.ends.is_set():
            try:
                batch = member.poll(life.random.randint(1, 40), timeout=0.2)
            except StorageError as e:
                notebook.note([f"{life.name} nowhere error {e}"])
                continue
            if batch:
                notebook.note(lines_of(batch, life.name))
                life.ends.wait(life.random.random() * 0.03)  # it lags behind those who write
                if life.random.random() < 0.7:
                    member.commit(batch.positions)


def live(directory: Path, what: str, name: str, seed: str, *rest: str) -> None:
    life = Life(directory, name, int(seed))
    if what == "reader":
        read(life, rest[0])
        return
    if rest[0] == "skewed":
        life.skew_clock()
    assert wall_micros() > 0
    if rest[1] == "raw":
        write_by_listener(life)
    else:
        write_by_bus(life, idle=rest[1] == "idle")


def fork(directory: Path, work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        errors = os.open(directory / "errors", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor, target in ((nothing, 0), (nothing, 1), (errors, 2)):
            os.dup2(descriptor, target)
        faulthandler.enable(2)
        work()
    except BaseException:  # noqa: BLE001 - a child must never return from here
        os.write(2, traceback.format_exc().encode())
        os._exit(1)
    os._exit(0)


def status_of(child: int, patience: float) -> int:
    """How it ended. Who stays is told to say where it is, and that isn't SIGTERM's status."""
    deadline = time.monotonic() + patience
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGABRT)  # faulthandler writes the stacks
            ended = os.waitpid(child, 0)
            break
        time.sleep(0.002)
    return os.waitstatus_to_exitcode(ended[1])


def main(directory: Path) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # until a child has what takes it
    for line in sys.stdin:
        what, *words = line.split()
        if what == "wait":
            answer = status_of(int(words[0]), float(words[1]))
        else:
            arguments = (what, *words)
            answer = fork(directory, lambda arguments=arguments: live(directory, *arguments))  # type: ignore[misc]
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
