"""What headwater costs an interpreter that has nothing to do with it: starts with and without its line.

Run in turns, so that both see the same machine; -S and a site directory of our own make the line the only difference.
The limit holds for the processor's time.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

import headwater
from headwater.listeners import hook
from tests.benchmarks.harness import Aims
from tests.benchmarks.imports import Run, once

RUNS = 200
LIMIT = 2.0
LINE = Path(hook.__file__).with_name("hook.pth")


def command(site: Path) -> list[str]:
    """An interpreter that takes its site-packages from there alone."""
    return [sys.executable, "-I", "-S", "-c", f"import site; site.addsitedir({str(site)!r})"]


def sites(folder: Path) -> tuple[Path, Path]:
    """A site with the paths of headwater alone, and one with the line too."""
    paths = "".join(f"{Path(path).parent}\n" for path in headwater.__path__)
    made = []
    for name, lines in (("without", {}), ("with", {"headwater.pth": LINE.read_text()})):
        site = folder / name
        site.mkdir()
        for file, text in {"_headwater.pth": paths, **lines}.items():
            (site / file).write_text(text)
        made.append(site)
    return made[0], made[1]


def main() -> int:
    """Print the table; 1 if the limit is passed."""
    with tempfile.TemporaryDirectory() as folder:
        without, with_line = sites(Path(folder))
        known = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COVERAGE"))}
        environment = {**known, "PYTHONPYCACHEPREFIX": folder}
        pairs: list[tuple[Run, Run]] = [
            (once(command(without), environment), once(command(with_line), environment)) for _ in range(RUNS + 1)
        ][1:]
    print(f"{'milliseconds to start':<28}{'least':>8}{'median':>8}{'processor, median':>20}")
    for name, runs in zip(("without", "with headwater's line"), zip(*pairs, strict=True), strict=True):
        clock, processor = [run.clock for run in runs], [run.processor for run in runs]
        print(f"{name:<28}{min(clock):>8.2f}{statistics.median(clock):>8.2f}{statistics.median(processor):>20.2f}")
    more = statistics.median(ours.processor - bare.processor for bare, ours in pairs)
    aims = Aims()
    aims.at_most("more processor time, median of pairs", more, LIMIT, "ms")
    return aims.report()


if __name__ == "__main__":
    sys.exit(main())
