"""A driver over a spool and Kafka, to be killed or stopped: a program of the fault tests.

Usage: python -m tests.kit.kafka.victim ORDERS, a file of JSON (`Orders`). It notes what it reported in `told`, and
in `done` whether all went out when it was stopped. While a file `full` is there its disk is full; a file `clock` holds
the seconds by which the machine's clock is off.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

BURST = 20


@dataclass(frozen=True)
class Orders:
    """What a victim is to do."""

    directory: str
    conf: dict[str, str]
    seed: int
    events: int
    """To be emitted, in bursts with pauses between them."""
    pause: float
    """The longest between two bursts."""
    stop_within: float
    """Seconds for the end."""

    def write(self) -> Path:
        place = Path(self.directory, "orders.json")
        place.write_text(json.dumps(asdict(self)))
        return place

    @classmethod
    def read(cls, place: Path) -> Orders:
        return cls(**json.loads(place.read_text()))


@dataclass(frozen=True)
class Done:
    """How a victim ended that was let."""

    complete: bool
    """What `stop` answered."""
    stop_seconds: float
    longest_tell: float

    @classmethod
    def read(cls, directory: Path) -> Done:
        return cls(**json.loads((directory / "done").read_text()))


def bend_clock(sign: Path) -> None:
    """The clock of this process is off by the seconds that stand in a file, looked at now and again."""
    real_nanos, real_seconds = time.time_ns, time.time
    off, looked = [0], [0.0]

    def offset() -> int:
        if (now := time.monotonic()) - looked[0] > 0.005:
            looked[0] = now
            off[0] = int(text) if sign.exists() and (text := sign.read_text()) else 0
        return off[0]

    patched: dict[str, Callable[[], Any]] = {
        "time_ns": lambda: real_nanos() + offset() * 1_000_000_000,
        "time": lambda: real_seconds() + offset(),
    }
    for name, function in patched.items():
        setattr(time, name, function)


def main(place: str) -> None:
    orders = Orders.read(Path(place))
    directory = Path(orders.directory)
    bend_clock(directory / "clock")  # before anybody takes the clock's functions with him
    from dataclasses import replace

    from headwater.listeners.bus import Bus
    from headwater.spi import Application
    from tests.kit.events.drafts import many_drafts
    from tests.kit.faults.full_disk import FullDisk
    from tests.kit.kafka.conf import OPTIONS
    from tests.kit.kafka.ledger import Ledger

    random, ledger = Random(orders.seed), Ledger(directory / "told")
    options = replace(OPTIONS, files=FullDisk(directory / "full"))
    bus = Bus.open(orders.conf, Application(f"application_{orders.seed}", "victim"), options=options)
    drafts, longest = many_drafts(random), 0.0
    for number in range(orders.events):
        began = time.monotonic()
        emitted = bus.emit(next(drafts))
        longest = max(longest, time.monotonic() - began)
        ledger.note(emitted)
        if number % BURST == BURST - 1:
            time.sleep(random.random() * orders.pause)
    began = time.monotonic()
    complete = bus.stop(orders.stop_within)
    done = Done(complete, time.monotonic() - began, longest)
    (directory / "done.new").write_text(json.dumps(asdict(done)))
    (directory / "done.new").rename(directory / "done")


if __name__ == "__main__":
    main(*sys.argv[1:])
