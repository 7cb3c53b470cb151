"""The one number that all randomness in the tests comes from, so that each commit tries other examples, and a run that
failed is played again exactly.

The seed is HEADWATER_SEED; else a number made of the commit; outside of a repository it is 0. `HEADWATER_SEED=random`
takes another one each time. It decides the order of the tests, Hypothesis's examples and the rounds of faults. A seed
with which a round failed once becomes a fixed one: hand it to `rounds`.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

VARIABLE: Final = "HEADWATER_SEED"
PROFILE_VARIABLE: Final = "HYPOTHESIS_PROFILE"
"""How long laws are tried (tests/kit/effort.py)."""
OUTSIDE_OF_A_REPOSITORY: Final = 0
_BITS: Final = 32
_ROOT: Final = Path(__file__).parents[2]


@cache
def seed() -> int:
    """Return this run's seed, the same one in all of its processes."""
    given = os.environ.get(VARIABLE, "")
    if not given:
        return seed_of_commit(_ROOT)
    if given == "random":
        return int.from_bytes(os.urandom(_BITS // 8), "big")
    if not given.isascii() or not given.isdecimal():
        raise SystemExit(f"{VARIABLE} is {given!r}; give a whole number, `random`, or nothing for the commit's seed")
    return int(given)


def seed_of_commit(directory: Path) -> int:
    """Return a number made of the commit that is checked out in the directory."""
    command = ["git", "-C", str(directory), "rev-parse", "--verify", "--quiet", "HEAD"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout.strip()
    except OSError:  # no git on this machine
        commit = ""
    return int(commit[: _BITS // 4], 16) if commit else OUTSIDE_OF_A_REPOSITORY


def rounds(count: int, fixed: Sequence[int] = ()) -> list[int]:
    """Return the seeds of so many rounds: all the fixed ones first, then others derived from the run's seed."""
    derived = Random(seed())
    return [*fixed, *(derived.getrandbits(_BITS) for _ in range(count - len(fixed)))]


def command_to_repeat(target: str) -> str:
    """Return the command that plays the same again, with what tools/ set for this run."""
    profile = os.environ.get(PROFILE_VARIABLE)
    length = [f"{PROFILE_VARIABLE}={profile}"] if profile else []
    return " ".join([f"{VARIABLE}={seed()}", *length, target])


def this_python() -> str:
    """Return how a command typed in the checkout calls this Python, which may be that of another Spark."""
    python = Path(sys.executable)
    return shlex.quote(str(python.relative_to(_ROOT) if python.is_relative_to(_ROOT) else python))
