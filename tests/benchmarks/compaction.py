"""What compaction saves and costs, and what many drivers leave of a local log: python -m tests.benchmarks.compaction

Events are those of `headwater.testing.examples` as a driver stamps them, some 600 bytes with key and headers. Rates are
of the bytes before compaction.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from headwater.events.avro import current_schema
from headwater.events.envelope import Event
from headwater.events.keys import headers_of, key_of
from headwater.events.producer import Producer
from headwater.journal import Entry, Fsync, Journal, JournalOptions, JournalReader, LocalLog
from headwater.publishers.upkeep import _REST  # pyright: ignore[reportPrivateUsage] # the pace that is measured
from headwater.testing.examples import EXAMPLES

MIB = 1 << 20
OPTIONS = JournalOptions(fsync=Fsync.NONE, max_bytes=None, compact_after=0)
DRIVERS = 1000
AT_ONCE = (10, 100, 300)
MEASURED = ("next writer, ms", "open a group, ms", "descriptors", "read, events/s", "idle poll, ms")


def entries(count: int) -> list[Entry]:
    """Events with their own ids and times."""
    found: list[Entry] = []
    producer = Producer("application_1")

    def take(event: Event, data: bytes) -> None:
        found.append(Entry(data, key_of(event), headers_of(event, current_schema(type(event)).fingerprint)))

    for number in range(count):
        producer.emit(EXAMPLES[number % len(EXAMPLES)], take)
    return found


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def fill(directory: Path, events: list[Entry], mib: int) -> int:
    """How many events it took."""
    with Journal.open(directory, OPTIONS) as journal:
        while journal.size < mib * MIB:
            journal.append_many(events)
        journal.finish_segment(1)
        return journal.next_offset


def compact(directory: Path) -> None:
    with Journal.open(directory, OPTIONS) as journal:
        while journal.compact() is not None:
            pass


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("*.segment"))


def read_all(directory: Path) -> int:
    count = 0
    with JournalReader.open(directory).tail(0) as tail:
        while batch := tail.read(1000):
            count += len(batch.records)
    return count


def open_in_the_middle(directory: Path, offset: int) -> None:
    with JournalReader.open(directory).tail(offset) as tail:
        assert tail.read(1).records[0].offset == offset


def row(name: str, *values: object) -> None:
    sys.stdout.write(f"{name:<44}" + "".join(f"{value!s:>16}" for value in values) + "\n")
    sys.stdout.flush()


def ratios(directory: Path, events: list[Entry]) -> None:
    count = fill(directory, events, 64)
    raw, middle = size_of(directory), count // 2 + 4321
    before = seconds(lambda: read_all(directory)), seconds(lambda: open_in_the_middle(directory, middle))
    processor = time.process_time()
    taken = seconds(lambda: compact(directory))
    processor = time.process_time() - processor
    after = seconds(lambda: read_all(directory)), seconds(lambda: open_in_the_middle(directory, middle))
    small = size_of(directory)
    row("", "as written", "compacted", "ratio")
    row("bytes", f"{raw:,}", f"{small:,}", f"{raw / small:.1f}")
    row("bytes an event", round(raw / count), round(small / count))
    row("read, events/s", f"{count / before[0]:,.0f}", f"{count / after[0]:,.0f}", f"{before[0] / after[0]:.2f}")
    row("to a place in the middle, ms", f"{before[1] * 1e3:.1f}", f"{after[1] * 1e3:.1f}")
    row("compaction, MB/s (of processor time)", f"{raw / taken / 1e6:.0f}", f"{raw / processor / 1e6:.0f}")


def memory(directory: Path, events: list[Entry]) -> None:
    for mib in (8, 64):
        fill(directory / str(mib), events, mib)
        tracemalloc.start()
        compact(directory / str(mib))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        row(f"most memory while {mib} MiB are compacted", f"{most / MIB:.2f} MiB")


def latencies(directory: Path, events: list[Entry]) -> None:
    """What an append beside it costs, 2,000 a second: alone, with compaction as the listener paces it, and unpaced."""
    for name, rest in (("alone", None), ("beside compaction", _REST), ("beside compaction without rests", 0.0)):
        place = directory / name.replace(" ", "-")
        fill(place, events, 64)
        with Journal.open(place, OPTIONS) as journal:
            done = threading.Event()

            def work(journal: Journal = journal, rest: float | None = rest, done: threading.Event = done) -> None:
                while rest is not None and not done.is_set() and journal.compact(lambda: not done.wait(rest)):
                    pass

            thread = threading.Thread(target=work)
            thread.start()
            taken = sorted(paced_appends(journal, events))
            done.set()
            thread.join()
        points = [f"{taken[int(len(taken) * point)] * 1e6:,.0f} µs" for point in (0.5, 0.99, 0.999)]
        row(f"append p50, p99, p99.9 {name}", *points)


def paced_appends(journal: Journal, events: list[Entry]) -> list[float]:
    taken: list[float] = []
    until = time.perf_counter() + 3
    while (now := time.perf_counter()) < until:
        event = events[len(taken) % len(events)]
        journal.append(event.value, key=event.key, headers=event.headers)
        taken.append(time.perf_counter() - now)
        time.sleep(0.0005)
    return taken


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def drivers(directory: Path, events: list[Entry]) -> None:
    log = LocalLog.open(directory / "one-after-another", JournalOptions(compact_after=3600))

    def run() -> None:
        for number in range(DRIVERS):
            with log.writer() as journal:
                journal.append_many(events[number % 100 : number % 100 + 5])

    taken = seconds(run)
    segments = len(list(log.directory.rglob("*.segment")))
    row(f"{DRIVERS} drivers, one after another", f"{taken / DRIVERS * 1e3:.1f} ms each")
    row("partitions, segments left", len(log.partitions()), segments)
    row("drivers at once", *AT_ONCE)
    found = [at_once(directory / str(count), events, count) for count in AT_ONCE]
    for number, name in enumerate(
        ("next writer, ms", "open a group, ms", "descriptors", "read, events/s", "idle poll, ms")
    ):
        row(name, *(each[number] for each in found))


def at_once(directory: Path, events: list[Entry], count: int) -> list[str]:
    log = LocalLog.open(directory, JournalOptions(fsync=Fsync.NONE, compact_after=3600))
    writers = [log.writer() for _ in range(count)]
    for writer in writers:
        writer.append_many(events[:100])
        writer.close()
    writing = seconds(lambda: log.writer().close())
    before = descriptors()
    with log.group("g") as member:
        opening = seconds(lambda: member.poll(1))
        held = descriptors() - before
        reading = seconds(lambda: [None for _ in iter(lambda: member.poll(1000).records, ())])
        idle = seconds(lambda: member.poll(1000))
    rate = (count * 100 - 1) / reading
    return [f"{writing * 1e3:.1f}", f"{opening * 1e3:.0f}", str(held), f"{rate:,.0f}", f"{idle * 1e3:.2f}"]


def main(directory: Path) -> None:
    events = entries(2_800)
    for part in (ratios, memory, latencies, drivers):
        (directory / part.__name__).mkdir()
        part(directory / part.__name__, events)
        sys.stdout.write("\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as scratch:
        main(Path(scratch))
