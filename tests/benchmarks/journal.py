"""How fast a journal is beside bare files: python -m tests.benchmarks.journal [DIRECTORY].

Each pair runs in turns in one process, and the medians are compared. "Buffered" is `write` on an open buffered file:
its bytes are in the process until the buffer is full, and die with it. "To the kernel" is one unbuffered write for
each record, which is what it takes for a record to survive the process. The journal always does the latter before it
returns; `append_many` does it once for a batch.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from headwater.journal import Fsync, Journal, JournalOptions

RECORD = os.urandom(300)
COUNT = 40_000
BATCH = 100
ROUNDS = 7
SYNCED = 400


class Rate(NamedTuple):
    """Records a second, by the clock and by the processor's time, which other programs of the machine hardly change."""

    wall: float
    cpu: float


Run = Callable[[Path], Rate]


class Stopwatch:
    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def rate(self, count: int) -> Rate:
        return Rate(count / (time.perf_counter() - self._wall), count / (time.process_time() - self._cpu))


def bare_buffered(path: Path) -> Rate:
    with path.open("wb") as file:
        watch = Stopwatch()
        for _ in range(COUNT):
            file.write(RECORD)
        file.flush()
        return watch.rate(COUNT)


def bare_to_kernel(path: Path) -> Rate:
    with path.open("wb", buffering=0) as file:
        watch = Stopwatch()
        for _ in range(COUNT):
            file.write(RECORD)
        return watch.rate(COUNT)


def bare_flushed(path: Path) -> Rate:
    with path.open("wb") as file:
        watch = Stopwatch()
        for _ in range(COUNT):
            file.write(RECORD)
            file.flush()
        return watch.rate(COUNT)


def open_journal(path: Path, fsync: Fsync) -> Journal:
    return Journal.open(path, JournalOptions(fsync=fsync, max_bytes=64 * 1024 * 1024, reserve_bytes=0))


def journal_single(path: Path, fsync: Fsync = Fsync.NONE) -> Rate:
    with open_journal(path, fsync) as journal:
        append = journal.append
        watch = Stopwatch()
        for _ in range(COUNT):
            append(RECORD)
        return watch.rate(COUNT)


def journal_batch(path: Path) -> Rate:
    with open_journal(path, Fsync.NONE) as journal:
        batch = [RECORD] * BATCH
        watch = Stopwatch()
        for _ in range(COUNT // BATCH):
            journal.append_many(batch)
        return watch.rate(COUNT)


def journal_threads(path: Path, threads: int, count: int, fsync: Fsync) -> Rate:
    """Records a second that so many threads append together."""
    with open_journal(path, fsync) as journal:
        start = threading.Barrier(threads + 1)

        def work() -> None:
            start.wait()
            for _ in range(count // threads):
                journal.append(RECORD)

        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        start.wait()
        watch = Stopwatch()
        for worker in workers:
            worker.join()
        return watch.rate(count)


def bare_synced(path: Path) -> Rate:
    with path.open("wb", buffering=0) as file:
        watch = Stopwatch()
        for _ in range(SYNCED):
            file.write(RECORD)
            os.fdatasync(file.fileno())
        return watch.rate(SYNCED)


def in_turns(directory: Path, runs: dict[str, Run]) -> dict[str, Rate]:
    """The median rates of each, all of them run once in each round."""
    rates: dict[str, list[Rate]] = {name: [] for name in runs}
    for turn in range(ROUNDS):
        for number, (name, run) in enumerate(runs.items()):
            rates[name].append(run(directory / f"{turn}-{number}"))
    return {name: Rate(*map(statistics.median, zip(*each, strict=True))) for name, each in rates.items()}


def latencies(path: Path) -> list[float]:
    """Microseconds of each append with an fsync in the background four times a second, as a paced driver sees them."""
    taken: list[float] = []
    options = JournalOptions(fsync=Fsync.INTERVAL, fsync_interval=0.25)
    with Journal.open(path, options) as journal:
        until = time.perf_counter() + 3
        while (began := time.perf_counter()) < until:
            journal.append(RECORD)
            taken.append((time.perf_counter() - began) * 1e6)
            if len(taken) % 20 == 0:
                time.sleep(0.001)
    return sorted(taken)


def show(title: str, rates: dict[str, Rate], against: list[str]) -> None:
    """A row for each run: its rate, and its ratio to each of `against` by the clock / by the processor's time."""
    heads = "".join(f"{'of ' + name:>30}" for name in against)
    sys.stdout.write(f"\n{title:<40}{'records/s':>12}{heads}\n")
    for name, rate in rates.items():
        ratios = [f"{rate.wall / rates[each].wall:.0%} / {rate.cpu / rates[each].cpu:.0%}" for each in against]
        sys.stdout.write(f"{name:<40}{rate.wall:>12,.0f}{''.join(f'{ratio:>30}' for ratio in ratios)}\n")


def main(directory: Path) -> None:
    unsynced: dict[str, Run] = {
        "bare, buffered": bare_buffered,
        "bare, to the kernel": bare_to_kernel,
        "bare, buffered and flushed": bare_flushed,
        "journal, append": journal_single,
        "journal, append, fsync=interval": lambda path: journal_single(path, Fsync.INTERVAL),
        f"journal, append_many of {BATCH}": journal_batch,
        "journal, append from 8 threads": lambda path: journal_threads(path, 8, COUNT, Fsync.NONE),
    }
    against = ["bare, buffered", "bare, to the kernel"]
    show(f"{len(RECORD)}-byte records without fsync", in_turns(directory / "unsynced", unsynced), against)
    synced: dict[str, Run] = {"bare, write and fdatasync": bare_synced}
    for threads in (1, 8, 32):
        name = f"journal, fsync=always, {threads} threads"
        synced[name] = partial(journal_threads, threads=threads, count=SYNCED * threads, fsync=Fsync.ALWAYS)
    show("with fsync for each", in_turns(directory / "synced", synced), ["bare, write and fdatasync"])
    taken = latencies(directory / "latency")
    points = "  ".join(f"p{point * 100:g} {taken[int(len(taken) * point)]:,.1f} µs" for point in (0.5, 0.99, 0.999))
    sys.stdout.write(f"\nlatency of append, fsync=interval: {points}  most {taken[-1]:,.1f} µs\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as scratch:
        for part in ("unsynced", "synced"):
            (Path(scratch) / part).mkdir()
        main(Path(scratch))
