"""A driver's life with Kafka, and what a long outage leaves.

    python -m tests.benchmarks.publishing_long [seconds] [megabytes]

- The life: commits are reported at 1,000 a second for so long (600 s) while they go to a broker. Shown are what
telling one takes the one who tells (in all, and of it the append to the spool), and what the process holds as time
goes by. - The outage: a spool of so many megabytes (1,024) is left by a driver that died, and another one ships it.
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from headwater import local
from headwater.journal import Journal, JournalOptions
from headwater.listeners.bus import Bus
from headwater.spi import Application
from headwater.testing.examples import COMMITTED
from tests.benchmarks.harness import Aims
from tests.benchmarks.publishing import entries, spool_of

RATE: Final = 1_000
BURST: Final = 10
P50, P99 = 50.0, 1_000.0


def resident() -> float:
    """Megabytes that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def bus_to(address: str, spools: Path, topic: str) -> Bus:
    keys = {
        "spark.headwater.listeners": "kafka",
        "spark.headwater.spool.dir": str(spools),
        "spark.headwater.kafka.bootstrap.servers": address,
        "spark.headwater.kafka.topic": topic,
    }
    return Bus.open(keys, Application("application_1", "benchmark"))


def timed(call: Callable[..., Any], taken: list[float]) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **named: Any) -> Any:
        began = time.perf_counter()
        try:
            return call(*arguments, **named)
        finally:
            taken.append((time.perf_counter() - began) * 1e6)

    return wrapped


def life(address: str, spools: Path, seconds: int, aims: Aims) -> None:
    bus = bus_to(address, spools, "life")
    spool = spool_of(bus)
    emit_times: list[float] = []
    appended: list[float] = []
    spool.append = timed(spool.append, appended)  # type: ignore[method-assign]
    tell = timed(bus.emit, emit_times)
    marks: list[float] = []
    began, count = time.monotonic(), 0
    while (now := time.monotonic() - began) < seconds:
        if count < now * RATE:
            for _ in range(BURST):
                tell(COMMITTED)
            count += BURST
        else:
            time.sleep(0.001)
        if now > seconds * (len(marks) + 1) / 11:
            marks.append(resident())
            del emit_times[:-100_000], appended[:-100_000]
    delivered = bus.flush(30)
    report = bus.report()
    bus.stop(10)
    sys.stdout.write(f"{count:,} commits told in {seconds} s, all acknowledged: {delivered}; {report}\n")
    for name, each in (("telling, in all", emit_times), ("of it the append", appended)):
        cuts = statistics.quantiles(each, n=1000)
        p50, p99, worst = cuts[499], cuts[989], max(each)
        sys.stdout.write(f"  {name:<20} p50 {p50:,.0f} µs, p99 {p99:,.0f} µs, longest {worst:,.0f} µs\n")
    sys.stdout.write(f"  the process holds, in MB: {', '.join(f'{each:.0f}' for each in marks)}\n")
    cuts = statistics.quantiles(appended, n=1000)
    aims.is_true("all that was told is acknowledged", delivered)
    aims.at_most("append to the spool, p50", cuts[499], P50, "µs")
    aims.at_most("append to the spool, p99", cuts[989], P99, "µs")


def outage(address: str, spools: Path, megabytes: int, aims: Aims) -> None:
    """What ends the dead driver isn't there: whoever ships it tells that."""
    some = entries()[:2_000]
    dead = spools / "dead"
    with Journal.open(dead, JournalOptions(max_bytes=None)) as journal:
        with journal.cursor("kafka"):
            while journal.size < megabytes << 20:
                journal.append_many(some)
        count = journal.next_offset
    before = resident()
    began = time.monotonic()
    bus = bus_to(address, spools, "outage")
    highest = before
    while bus.ship(0.5) is None:
        highest = max(highest, resident())
    took = time.monotonic() - began
    bus.stop(10)
    gone = not dead.exists()
    sys.stdout.write(
        f"a spool of {megabytes:,} MB, {count:,} events, shipped in {took:.0f} s: {count / took:,.0f} events/s, "
        f"{megabytes / took:.1f} MB/s; the process held {before:.0f} MB before and {highest:.0f} MB at most; "
        f"gone when through: {gone}\n"
    )
    aims.is_true("the dead driver's spool is shipped and gone", gone)


def main() -> int:
    seconds, megabytes = (int(sys.argv[n]) if len(sys.argv) > n else usual for n, usual in ((1, 600), (2, 1024)))
    with local.kafka() as broker, tempfile.TemporaryDirectory() as scratch:
        aims = Aims()
        if seconds:
            life(broker.address, Path(scratch, "life"), seconds, aims)
        if megabytes:
            outage(broker.address, Path(scratch, "outage"), megabytes, aims)
    return aims.report()


if __name__ == "__main__":
    sys.exit(main())
