"""What emitting an event costs the one who tells it, and how fast listeners are fed: python -m tests.benchmarks.bus

A bus is compared with a bare `append` of the same record to a journal of the same options, and with a producer that
appends nowhere: redaction, numbering and encoding are most of it. Telling is measured in short bursts, as a driver does
it, so that the listeners' threads have their time in between; and at full speed, where all compete for an interpreter.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from headwater.events.avro import current_schema
from headwater.events.envelope import Event
from headwater.events.keys import headers_of, key_of
from headwater.events.producer import Producer
from headwater.journal import Fsync, Journal, JournalOptions
from headwater.listeners.bus import Bus
from headwater.spi import Application
from headwater.testing.examples import COMMITTED
from headwater.testing.memory import forget

BURSTS = 200
BURST = 20
PAUSE = 0.005
FULL_SPEED = 20_000
DURABLE = "headwater.testing.memory:DurableMemoryFactory"
PLAIN = "headwater.testing.memory:MemoryFactory"


def micros(call: Callable[[], object]) -> float:
    """The median over bursts of the microseconds that a call takes."""
    taken: list[float] = []
    for _ in range(BURSTS):
        began = time.perf_counter()
        for _ in range(BURST):
            call()
        taken.append((time.perf_counter() - began) / BURST * 1e6)
        time.sleep(PAUSE)
    return statistics.median(taken)


def bare_append(directory: Path) -> float:
    stamped: list[tuple[Event, bytes]] = []
    Producer("application_1").emit(COMMITTED, lambda event, data: stamped.append((event, data)))
    ((event, data),) = stamped
    key, headers = key_of(event), headers_of(event, current_schema(type(event)).fingerprint)
    with Journal.open(directory / "bare", JournalOptions(fsync=Fsync.INTERVAL)) as journal:
        return micros(lambda: journal.append(data, key=key, headers=headers))


def nowhere() -> float:
    producer = Producer("application_1")
    return micros(lambda: producer.emit(COMMITTED, _ignore))


def _ignore(event: Event, data: bytes) -> None:
    """Nothing is written."""


def bus_with(directory: Path, listeners: str) -> Bus:
    configuration = {"spark.headwater.spool.dir": str(directory), "spark.headwater.listeners": listeners}
    bus = Bus.open(configuration, Application("application_1", "benchmark"))
    bus.emit(COMMITTED)
    bus.flush(10)
    return bus


def measured(directory: Path, listeners: str) -> float:
    bus = bus_with(directory, listeners)
    try:
        return micros(lambda: bus.emit(COMMITTED))
    finally:
        bus.stop(10)
        forget("mine")


def full_speed(directory: Path) -> tuple[float, float]:
    """Events a second told without a pause, and until all of them have arrived."""
    bus = bus_with(directory, f"mine={DURABLE}")
    began = time.perf_counter()
    for _ in range(FULL_SPEED):
        bus.emit(COMMITTED)
    reported_in = time.perf_counter() - began
    bus.flush(60)
    arrived_in = time.perf_counter() - began
    bus.stop(10)
    forget("mine")
    return FULL_SPEED / reported_in, FULL_SPEED / arrived_in


def main(directory: Path) -> None:
    bare = bare_append(directory)
    rows = {
        "bare journal, append": bare,
        "producer that appends nowhere": nowhere(),
        "bus, one durable listener": measured(directory / "1", f"mine={DURABLE}"),
        "bus, three durable listeners": measured(directory / "2", f"mine={DURABLE},b={DURABLE},c={DURABLE}"),
        "bus, one durable and one plain": measured(directory / "3", f"mine={DURABLE},plain={PLAIN}"),
    }
    sys.stdout.write(f"{'an event of a commit':<36}{'µs':>10}{'of bare':>10}\n")
    for name, each in rows.items():
        sys.stdout.write(f"{name:<36}{each:>10.1f}{each / bare:>10.1f}\n")
    own = rows["bus, one durable listener"] - rows["producer that appends nowhere"]
    sys.stdout.write(f"the bus's own part, the append in it: {own:.1f} µs, {own / bare:.1f} bare appends\n")
    rate, arrived = full_speed(directory / "4")
    sys.stdout.write(f"at full speed: {rate:,.0f} events/s told, {arrived:,.0f} events/s arrived\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as scratch:
        main(Path(scratch))
