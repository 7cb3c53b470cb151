"""A target is away while a million events come, and is then sent all of them: the memory of the forwarder stays flat.

    .venv/bin/python -m tests.benchmarks.forward_outage [--events 1000000]

On a local log, because it needs no other process; the resident size is that of the forwarder's process.
"""

from __future__ import annotations

import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from headwater.events.avro import Codec
from headwater.events.keys import key_of
from headwater.journal import JournalEntry, JournalOptions, LocalLog
from tests.benchmarks.harness import Aims
from tests.kit.forwarders.process import ForwardProcess
from tests.kit.forwarders.stage import commit
from tests.kit.waiting import attempts

COUNTER: Final = "tests.kit.forwarders.targets:Counter"
_AT_ONCE: Final = 5_000
_MOST_GROWTH: Final = 1.25
_SECONDS: Final = 1_800.0


def fill(place: Path, count: int) -> Iterator[int]:
    """Append so many events of a hundred jobs; yield how many there are."""
    codec, options = Codec(), JournalOptions(max_bytes=None)
    with LocalLog.open(place, options).writer() as journal:
        for first in range(1, count + 1, _AT_ONCE):
            numbers = range(first, min(first + _AT_ONCE, count + 1))
            events = [commit(number, f"job-{number % 100}", producer=number % 100 + 1) for number in numbers]
            journal.append_many([JournalEntry(codec.encode(event), key_of(event)) for event in events])
            yield numbers.stop - 1


def resident_mib(process: int) -> float:
    """Return the resident size of a process."""
    lines = Path(f"/proc/{process}/status").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="headwater-outage-"))
    file, away = folder / "count", folder / "count.away"
    away.touch()
    (folder / "log").mkdir()
    forwarders = {"counter": {"type": COUNTER, "file": str(file), "batch": "1000"}}
    with ForwardProcess(f"log:{folder}/log", folder / "state", forwarders) as process:
        filling = fill(folder / "log", given.events)
        next(filling)
        process.await_status("counter", "waiting")
        sizes = [resident_mib(process.process.pid)]
        began = time.monotonic()
        sizes += [resident_mib(process.process.pid) for count in filling if count % 50_000 == 0]
        print(f"{given.events:,} events came in {time.monotonic() - began:.0f} s while the target was away", flush=True)
        for _ in attempts("the lag to be measured", 60.0, 0.5):
            if (process.status("counter").lag or 0) >= given.events - 1_000:
                break
        while_away = max(sizes)
        away.unlink()
        began, later = time.monotonic(), list[float]()
        for _ in attempts("all events at the target", _SECONDS, 0.5):
            later.append(resident_mib(process.process.pid))
            if file.exists() and int(file.read_text("ascii") or 0) >= given.events:
                break
        seconds = time.monotonic() - began
        assert process.stop() == 0
    print(f"caught up in {seconds:.0f} s: {given.events / seconds:,.0f} events/s")
    print(f"MiB: {sizes[0]:.0f} at first, {while_away:.0f} at most while away, {max(later):.0f} at most catching up")
    aims = Aims()
    aims.at_most("largest size while away beside that at first", while_away / sizes[0], _MOST_GROWTH)
    aims.at_most("largest size catching up beside that at first", max(later) / sizes[0], 2.0)
    aims.is_true("each event arrived once", int(file.read_text("ascii")) == given.events)
    return aims.report()


if __name__ == "__main__":
    sys.exit(main())
