"""`make check`: everything that says within a minute whether a change is sound.

All steps run, side by side, whatever the others say; each prints its time, and its output if it failed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from tests.kit import seeds
from tools import environment

BIN = environment.VENV / "bin"
FAST = "not slow and not long and not spark and not kafka and not database"
NEVER_FAST = {"benchmarks", "matrix", "whole"}
"""Folders whose tests all start Spark, or take seconds."""
_MARKED = re.compile(r"^pytestmark = (?:\[[^\]]*|.*)\b(slow|long|spark|kafka|database)\b", re.MULTILINE)
_TEST = re.compile(r"^(?P<marks>(?:@.*\n(?:[ \)\]}].*\n)*)*)(?P<what>(?:async )?def test_|class Test)", re.MULTILINE)
_MARK = re.compile(r"^@pytest\.mark\.(slow|long|spark|kafka|database)\b", re.MULTILINE)


def fast_files(root: Path = environment.ROOT / "tests") -> list[Path]:
    """The files that can have fast tests in them. To import all the others only to leave their tests out takes longer
    than a good part of the fast ones."""
    files = (path for path in sorted(root.rglob("test_*.py")) if path.relative_to(root).parts[0] not in NEVER_FAST)
    return [path for path in files if may_be_fast(path.read_text(encoding="utf-8"))]


def may_be_fast(source: str) -> bool:
    """Whether neither a module's own mark nor those of each of its functions and classes leave all of its tests out."""
    if _MARKED.search(source):
        return False
    return any(not _MARK.search(found["marks"]) for found in _TEST.finditer(source))


def fast_tests(files: Iterable[Path]) -> list[str | Path]:
    """One process imports and collects, and each core then plays a part (tests/kit/plugins/forks.py)."""
    options = ["-q", "-p", "no:cacheprovider", "--forks", str(os.cpu_count() or 2), "-m", FAST]
    return [BIN / "python", "-m", "pytest", *options, *files]


# The longest first, so that the short ones fill the gaps.
STEPS: dict[str, list[str | Path]] = {
    "types (mypy)": [BIN / "mypy"],
    "fast tests": fast_tests(fast_files()),
    "layers": [BIN / "lint-imports", "--no-cache", "--no-logo"],
    "lint": [BIN / "ruff", "check", "--quiet", "."],
    "format": [BIN / "ruff", "format", "--check", "--quiet", "."],
}
# Three on two cores: each step waits now and then, and the short ones run while tests are collected.
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
    print(f"seed {seeds.seed()}; again: {seeds.command_to_repeat('make check')}", flush=True)
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
