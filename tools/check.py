"""`make check`: everything that says within a minute whether a change is sound.

All steps run, side by side, whatever the others say; each prints its time, and its output if it failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from tools import environment

BIN = environment.VENV / "bin"
FAST = "not slow and not long and not spark and not kafka and not database"
# The longest first, so that the short ones fill the gaps.
STEPS: dict[str, list[str | Path]] = {
    "fast tests": [BIN / "python", "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-m", FAST],
    "types (mypy)": [BIN / "mypy"],
    "types (basedpyright)": [BIN / "basedpyright"],
    "layers": [BIN / "lint-imports", "--no-cache", "--no-logo"],
    "lint": [BIN / "ruff", "check", "--quiet", "."],
    "format": [BIN / "ruff", "format", "--check", "--quiet", "."],
}
AT_ONCE = 3


@dataclass(frozen=True)
class Outcome:
    """How one step ended."""

    name: str
    passed: bool
    seconds: float
    output: str


def run_step(name: str, command: list[str | Path]) -> Outcome:
    """Run one step to its end, its output kept."""
    started = time.monotonic()
    env = {"HYPOTHESIS_PROFILE": "glance", **os.environ, "NO_COLOR": "1", "COLUMNS": "160"}
    done = subprocess.run(
        command, cwd=environment.ROOT, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return Outcome(name, done.returncode == 0, time.monotonic() - started, done.stdout + done.stderr)


def report(outcome: Outcome) -> None:
    """One line for a step that passed, the whole output for one that failed."""
    verdict = "ok    " if outcome.passed else "FAILED"
    print(f"{verdict} {outcome.name:<22}{outcome.seconds:6.1f} s", flush=True)
    if not outcome.passed:
        print(outcome.output.rstrip(), flush=True)


def main() -> int:
    """Run all steps and count those that failed."""
    started = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(run_step, name, command) for name, command in STEPS.items()]
        outcomes = []
        for future in as_completed(running):
            outcomes.append(future.result())
            report(outcomes[-1])
    failed = [outcome.name for outcome in outcomes if not outcome.passed]
    summary = f"failed: {', '.join(failed)}" if failed else "all passed"
    print(f"{summary} ({time.monotonic() - started:.0f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
