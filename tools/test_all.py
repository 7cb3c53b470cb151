"""`make test-all`: everything that takes long; `SLICE=3/39` plays a part of at most eight minutes.

The last slice plays the contracts of stores and of the bus on servers in containers. Each other kind of long test is
cut into as many parts as there are other slices, and a slice plays its part of each:

- tests that are `long`: the rest of sampled families, races, many random rounds, the demo, the whole path;
- the tests of capture on the other main line of Spark, and smoke tests on one more Spark;
- the laws with many more examples (Hypothesis);
- the fast tests on another Python: every slice on one of them, 3.12 with coverage and its limit.

`SLICE=auto` takes one of 39 by the commit's hash, so that the landings of a week play all of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tools import check, environment, sparks, test

SLICES = 39
PYTHONS = ("3.10", "3.12", "3.13")
COVERED = "3.12"


@dataclass(frozen=True)
class Slice:
    """The number-th of count parts, counted from 1."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @classmethod
    def parse(cls, text: str) -> Slice:
        """`3/39`, `auto` for the one that the commit's hash chooses, or nothing for everything."""
        if not text:
            return cls(1, 1)
        if text == "auto":
            return cls(int(commit()[:8], 16) % SLICES + 1, SLICES)
        number, _, count = text.partition("/")
        if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
            raise SystemExit(f"SLICE is K/N with 1 <= K <= N, such as 3/{SLICES}, or auto; not {text!r}")
        return cls(int(number), int(count))

    def mine(self, things: Sequence[str]) -> list[tuple[str, Slice]]:
        """One of a few things in each slice, turn by turn, with the part of it that is this slice's; all of them where
        there are fewer slices than things."""
        if self.count < len(things):
            return [(thing, Slice(1, 1)) for thing in things]
        place, turn = (self.number - 1) % len(things), (self.number - 1) // len(things)
        return [(things[place], Slice(turn + 1, len(range(place, self.count, len(things)))))]


def commit() -> str:
    """The commit that is checked out; zeros where there is no git."""
    command = ["git", "rev-parse", "HEAD"]
    done = subprocess.run(command, cwd=environment.ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "0" * 40


def long_tests(part: Slice) -> int:
    """Tests that `make test` leaves out."""
    return some(test.pytest("-m", "long and not spark4 and not containers", f"--slice={part}"))


def laws(part: Slice) -> int:
    """The laws, each with ten times the examples of `make test`."""
    os.environ["HYPOTHESIS_PROFILE"] = "slice"
    try:
        return some(test.pytest("-m", "not database and not kafka and not spark", f"--slice={part}", "tests/property"))
    finally:
        del os.environ["HYPOTHESIS_PROFILE"]


def on_second_spark(part: Slice) -> int:
    """The tests of capture on the other main line of Spark."""
    return some(sparks.run(sparks.SECOND, "-q", "-m", "not spark3", f"--slice={part}", *test.PARALLEL, *sparks.TESTS))


def on_other_sparks(part: Slice) -> int:
    """A part of the smoke tests of capture on one of the other Sparks."""
    return max(
        some(sparks.run(each, "-q", "-m", sparks.smoke(each), f"--slice={own}", *test.PARALLEL, *sparks.TESTS))
        for each, own in part.mine(sparks.SMOKED)
    )


def on_other_pythons(part: Slice) -> int:
    """The fast tests on another Python, on one of them with coverage."""
    return max(fast_tests_on(version) for version, _ in part.mine(PYTHONS))


def fast_tests_on(version: str) -> int:
    """The fast tests on this Python; its coverage has to reach `fail_under` of pyproject.toml."""
    python = str(environment.python_for(version))
    coverage = ["--cov", "--cov-report=term:skip-covered"] if version == COVERED else []
    command = [python, "-m", "pytest", "-q", "--no-skips", "-m", check.FAST, *test.PARALLEL, *coverage]
    # The core that costs next to nothing; it counts lines, not branches.
    env = {**os.environ, "COVERAGE_CORE": "sysmon", "HYPOTHESIS_PROFILE": "glance"}
    files = map(str, check.fast_files())
    return subprocess.run([*command, *files], cwd=environment.ROOT, env=env, check=False).returncode


def in_containers() -> int:
    """The contracts on real servers, and the tests of containers, where a Docker engine can be started."""
    command = [str(environment.PYTHON), "-m", "tests.kit.containers", str(environment.PYTHON), "-m", "pytest"]
    chosen = ["-q", "--no-skips", "-m", "(database or kafka or containers) and not spark", "-n0"]
    files = ["tests/contract", "tests/integration/test_containers.py"]
    return subprocess.run([*command, *chosen, *files], cwd=environment.ROOT, check=False).returncode


def some(status: int) -> int:
    """A small kind may have nothing for a slice; that is no failure (pytest's status 5)."""
    return 0 if status == NOTHING_COLLECTED else status


NOTHING_COLLECTED = 5
KINDS: dict[str, Callable[[Slice], int]] = {
    "long tests": long_tests,
    "second Spark": on_second_spark,
    "other Sparks": on_other_sparks,
    "laws, many examples": laws,
    "other Pythons": on_other_pythons,
}


CONTAINERS = "containers"


def kinds(part: Slice) -> dict[str, Callable[[], int]]:
    """What a slice plays: containers in the last one, a part of all else in each other; everything in one of one."""
    others = Slice(part.number, max(1, part.count - 1))
    parts: dict[str, Callable[[], int]] = {name: partial(kind, others) for name, kind in KINDS.items()}
    if part.count == 1:
        return {**parts, CONTAINERS: in_containers}
    return {CONTAINERS: in_containers} if part.number == part.count else parts


def main() -> int:
    """Play the slice that SLICE names; print each kind's time; fail if any failed."""
    part = Slice.parse(os.environ.get("SLICE", ""))
    print(f"== slice {part}: make test-all SLICE={part} plays it again", flush=True)
    failed = []
    for name, kind in kinds(part).items():
        started = time.monotonic()
        status = kind()
        verdict = "FAILED" if status else "ok"
        print(f"== slice {part}, {name}: {verdict} after {time.monotonic() - started:.0f} s", flush=True)
        if status:
            failed.append(name)
    if failed:
        print(f"failed in slice {part}: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
