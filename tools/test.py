"""`make test`: what finds most faults per minute, in at most 13 minutes on two idle cores.

First the second type checker and a few tests of capture on two other Sparks, side by side; then, in parallel, on real
servers and real Spark, every test that is neither `long` nor one of `make check`'s. Its laws are played again, with
more examples. A skipped test counts as a failure, and a failed one is not tried again: `tests/quarantine.txt` names the
few that are known to be unsteady. What is long runs in slices (tools/test_all.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tools import check, environment, sparks

# Groups of tests stay in one worker (tests/kit/plugins/tiers.py): what they share, a Spark driver say, starts once.
# One worker more than cores: a worker waits a third of its time, for a JVM that starts or a server that answers.
WORKERS = min(4, len(os.sched_getaffinity(0)) + 1)
SLOWEST = ("--durations=15", "--durations-min=8")
"""What takes longest is printed, so that whoever adds a test sees what it costs."""
PARALLEL = ("--numprocesses", str(WORKERS), "--dist", "loadfile", "--no-loadscope-reorder")
CHOSEN = ("-m", "not long and not spark4")
BEYOND_CHECK = ("-m", f"not long and not spark4 and (law or not ({check.FAST}))")
SECOND = ("delta", "files", "iceberg_writes")
NEWEST = ("catalog_tables", "spark4", "streams_files")
"""Modules whose smoke tests are played on the other main line and on the newest Spark each time, each on the one that
it finds most on; slices play all on both."""


def pytest(*arguments: str) -> int:
    """Run it on all cores; its status."""
    command = [str(environment.PYTHON), "-m", "pytest", "-q", "--no-skips", *SLOWEST, *PARALLEL, *arguments]
    return subprocess.run(command, cwd=environment.ROOT, check=False).returncode


def basedpyright() -> int:
    """Check the types a second time; print what it says only if it fails."""
    started = time.monotonic()
    command = [environment.VENV / "bin" / "basedpyright"]
    done = subprocess.run(command, cwd=environment.ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout + done.stderr, flush=True)
    verdict = "FAILED" if done.returncode else "ok"
    print(f"{verdict} types (basedpyright) {time.monotonic() - started:.1f} s", flush=True)
    return done.returncode


def beside() -> bool:
    """Run what needs one core each, side by side; whether all passed."""
    with ThreadPoolExecutor(2) as pool:
        others = {sparks.SECOND: SECOND, sparks.NEWEST: NEWEST}
        steps = [pool.submit(basedpyright), *(pool.submit(smoke, *each) for each in others.items())]
        statuses = [step.result() for step in steps]
        return not any(statuses)


def smoke(spark: str, names: Sequence[str]) -> int:
    """Run the smoke tests of these modules on this Spark; its status."""
    return sparks.run(spark, "-q", "-m", "smoke and not long", *(f"tests/matrix/test_{name}.py" for name in names))


def main() -> int:
    """All of it; with arguments pytest alone, which gets them."""
    if sys.argv[1:]:
        return pytest(*CHOSEN, *sys.argv[1:])
    passed = beside()
    status = pytest(*BEYOND_CHECK)
    return status or int(not passed)


if __name__ == "__main__":
    sys.exit(main())
