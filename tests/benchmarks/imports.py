"""How long an import takes, in new interpreters: `headwater.events` over a bare one, and `headwater --version`.

The least of many runs is what the code costs, the median shows what the machine adds, the processor's time is nearly
free of what else the machine does. The limits hold for the least by the processor's time: an import waits for nothing.
Bytecode is kept in a directory of its own, as an installation has it, whatever this environment says of it.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.harness import Aims

RUNS = 15
HEADWATER = str(Path(sys.executable).with_name("headwater"))
BARE = [sys.executable, "-c", "pass"]
MEASURED = {
    "import headwater.events, over bare": ([sys.executable, "-c", "import headwater.events"], BARE, 150),
    "import pydantic, over bare": ([sys.executable, "-c", "import pydantic; pydantic.BaseModel"], BARE, None),
    "headwater --version": ([HEADWATER, "--version"], None, 250),
}


class Run(NamedTuple):
    """Milliseconds of one run, by the clock and of the processor."""

    clock: float
    processor: float


def once(command: list[str], environment: Mapping[str, str]) -> Run:
    """One run of a command, from start to end, its output dropped."""
    started = time.perf_counter()
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    _, status, used = os.wait4(os.posix_spawn(command[0], command, environment, file_actions=quiet), 0)
    if status:
        raise SystemExit(f"{' '.join(command)}: ended with status {os.waitstatus_to_exitcode(status)}")
    return Run((time.perf_counter() - started) * 1000, (used.ru_utime + used.ru_stime) * 1000)


def sample(command: list[str], base: list[str] | None) -> tuple[float, float, float]:
    """Least and median by the clock, and least of the processor, each less the same of the base; run in turns."""
    with tempfile.TemporaryDirectory() as bytecode:
        known = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment = {**known, "PYTHONPYCACHEPREFIX": bytecode}
        once(command, environment)
        pairs = [(once(command, environment), once(base, environment) if base else Run(0, 0)) for _ in range(RUNS)]
    own, of_base = zip(*pairs, strict=True)
    clock, base_clock = [run.clock for run in own], [run.clock for run in of_base]
    processor = min(run.processor for run in own) - min(run.processor for run in of_base)
    return min(clock) - min(base_clock), statistics.median(clock) - statistics.median(base_clock), processor


def main() -> int:
    """Print the tables; 1 if a limit is passed."""
    print(f"{'milliseconds':<36}{'least':>8}{'median':>8}{'processor':>11}")
    aims = Aims()
    for name, (command, base, limit) in MEASURED.items():
        least, median, processor = sample(command, base)
        print(f"{name:<36}{least:>8.0f}{median:>8.0f}{processor:>11.0f}", flush=True)
        if limit is not None:
            aims.at_most(f"{name}, processor", processor, limit, "ms")
    return aims.report()


if __name__ == "__main__":
    sys.exit(main())
