"""`make` starts here: finds a usable Python and has it set up .venv (tools/environment.py).

This file alone must run on any Python 3, however old, so that such a machine gets one clear line and no syntax error:
hence no `from __future__ import annotations` and no f-strings.
"""

import os
import shutil
import subprocess
import sys

FLOOR = (3, 10)
# The Pythons of Spark 3.5 first: it needs setuptools on 3.12 and isn't promised to work on anything newer.
NAMES = ("python3.12", "python3.11", "python3.10", "python3", "python3.13", "python3.14", "python")
PROBE = """
import sys
from importlib.util import find_spec
ways = "venv" if find_spec("venv") and find_spec("ensurepip") else "pip" if find_spec("pip") else "none"
version = ".".join(map(str, sys.version_info[:2]))
print("|".join([version, ways, getattr(sys, "_base_executable", None) or sys.executable]))
"""
ADVICE = (
    "install Python 3.10, 3.11 or 3.12 with its venv module or pip (Debian: python3-venv), or name one: make PYTHON=…"
)


class Python:
    """An interpreter found on this machine: its version, how it can make an environment, and where it is."""

    def __init__(self, version: str, ways: str, path: str) -> None:
        self.version = version
        self.ways = ways
        self.path = path

    @property
    def new_enough(self) -> bool:
        return tuple(int(part) for part in self.version.split(".")) >= FLOOR

    @property
    def usable(self) -> bool:
        return self.new_enough and self.ways != "none"


def probe(name: str) -> "Python | None":
    """The interpreter behind a command, seen through an active virtual environment; None where it can't be run."""
    path = shutil.which(name)
    if path is None:
        return None
    try:
        output = subprocess.check_output([path, "-c", PROBE], stderr=subprocess.DEVNULL, universal_newlines=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    found = Python(*output.strip().split("|"))
    return found if os.path.realpath(found.path) == os.path.realpath(path) else probe(found.path) or found


def choose(asked: str) -> Python:
    """The Python to build on: the one asked for, else the first that brings venv, else the first that brings pip."""
    names = (asked,) if asked else NAMES
    found = [python for python in map(probe, names) if python is not None]
    usable = [python for python in found if python.usable]
    if usable:
        return next((python for python in usable if python.ways == "venv"), usable[0])
    subject = asked or "headwater"
    if not found:
        raise SystemExit(subject + ": no Python that can be run; " + ADVICE)
    if any(python.new_enough for python in found):
        raise SystemExit(subject + ": this Python has neither venv with ensurepip nor pip; " + ADVICE)
    versions = ", ".join(sorted(set(python.version for python in found)))  # noqa: C401 - as old as can be
    raise SystemExit(subject + ": needs Python 3.10 or newer and found only " + versions + "; " + ADVICE)


def main() -> None:
    """Return at once when the environment is as it should be, else become the chosen Python and build it."""
    level = sys.argv[1]
    asked = os.environ.get("PYTHON", "")
    if sys.version_info[:2] >= FLOOR and not asked:
        from tools import environment  # noqa: PLC0415 - can't be parsed by an old Python

        if environment.is_fresh(level):
            return
    python = choose(asked)
    os.execv(python.path, [python.path, "-m", "tools.environment", level])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
