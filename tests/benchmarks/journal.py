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

from headwater.journal import Fsync, Journal, JournalOptions

RECORD = os.urandom(300)
COUNT = 40_000
BATCH = 100
ROUNDS = 7
SYNCED = 400
Rate = Callable[[Path], float]


def bare_buffered(path: Path) -> float:
    with path.open("wb") as file:
        began = time.perf_counter()
        for _ in range(COUNT):
            file.write(RECORD)
        file.flush()
        return COUNT / (time.perf_counter() - began)


def bare_to_kernel(path: Path) -> float:
    with path.open("wb", buffering=0) as file:
        began = time.perf_counter()
        for _ in range(COUNT):
            file.write(RECORD)
        return COUNT / (time.perf_counter() - began)


def bare_flushed(path: Path) -> float:
    with path.open("wb") as file:
        began = time.perf_counter()
        for _ in range(COUNT):
            file.write(RECORD)
            file.flush()
        return COUNT / (time.perf_counter() - began)


def open_journal(path: Path, fsync: Fsync) -> Journal:
    return Journal.open(path, JournalOptions(fsync=fsync, max_bytes=64 * 1024 * 1024, reserve_bytes=0))


def journal_single(path: Path, fsync: Fsync = Fsync.NONE) -> float:
    with open_journal(path, fsync) as journal:
        append = journal.append
        began = time.perf_counter()
        for _ in range(COUNT):
            append(RECORD)
        return COUNT / (time.perf_counter() - began)


def journal_batch(path: Path) -> float:
    with open_journal(path, Fsync.NONE) as journal:
        batch = [RECORD] * BATCH
        began = time.perf_counter()
        for _ in range(COUNT // BATCH):
            journal.append_many(batch)
        return COUNT / (time.perf_counter() - began)


def journal_threads(path: Path, threads: int, count: int, fsync: Fsync) -> float:
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
        began = time.perf_counter()
        for worker in workers:
            worker.join()
        return count / (time.perf_counter() - began)


def bare_synced(path: Path) -> float:
    with path.open("wb", buffering=0) as file:
        began = time.perf_counter()
        for _ in range(SYNCED):
            file.write(RECORD)
            os.fdatasync(file.fileno())
        return SYNCED / (time.perf_counter() - began)


def in_turns(directory: Path, runs: dict[str, Rate]) -> dict[str, float]:
    """The median rate of each, all of them run once in each round."""
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(ROUNDS):
        for number, (name, run) in enumerate(runs.items()):
            rates[name].append(run(directory / f"{turn}-{number}"))
    return {name: statistics.median(each) for name, each in rates.items()}


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


def show(title: str, rates: dict[str, float], against: list[str]) -> None:
    heads = "".join(f"{'of ' + name:>28}" for name in against)
    sys.stdout.write(f"\n{title:<44}{'records/s':>12}{heads}\n")
    for name, rate in rates.items():
        ratios = "".join(f"{rate / rates[each]:>28.0%}" for each in against)
        sys.stdout.write(f"{name:<44}{rate:>12,.0f}{ratios}\n")


def main(directory: Path) -> None:
    unsynced = {
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
    synced: dict[str, Rate] = {"bare, write and fdatasync": bare_synced}
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
