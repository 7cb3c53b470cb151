"""How long an import takes, in new interpreters: `headwater.events` over a bare one, and `headwater --version`.

The least of many runs is what the code costs; the median shows what the machine adds. The limits hold for the least.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 15
HEADWATER = str(Path(sys.executable).with_name("headwater"))
BARE = [sys.executable, "-c", "pass"]
MEASURED = {
    "import headwater.events, over bare": ([sys.executable, "-c", "import headwater.events"], BARE, 150),
    "import pydantic, over bare": ([sys.executable, "-c", "import pydantic; pydantic.BaseModel"], BARE, None),
    "headwater --version": ([HEADWATER, "--version"], None, 250),
}


def milliseconds(command: list[str]) -> float:
    """One run of a command, from start to end."""
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - started) * 1000


def sample(command: list[str], base: list[str] | None) -> tuple[float, float]:
    """The least and the median, each less the same of the base, run in turns so that both see the same machine."""
    milliseconds(command)
    runs = [(milliseconds(command), milliseconds(base) if base else 0.0) for _ in range(RUNS)]
    own, of_base = zip(*runs, strict=True)
    return min(own) - min(of_base), statistics.median(own) - statistics.median(of_base)


def main() -> int:
    """Print the table; 1 if a limit is passed."""
    print(f"{'':<36}{'least ms':>10}{'median ms':>11}{'limit ms':>10}{'of limit':>10}")
    within = True
    for name, (command, base, limit) in MEASURED.items():
        least, median = sample(command, base)
        share = f"{limit:>10}{least / limit:>10.0%}" if limit else f"{'-':>10}{'-':>10}"
        print(f"{name:<36}{least:>10.0f}{median:>11.0f}{share}")
        within = within and (limit is None or least <= limit)
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
