"""The checkout's virtual environments: set up by uv from requirements/*.lock, believed only when finished.

`.venv` is for development on Spark 3.5, `.venv-spark-4.1.1` on another Spark, `.venv-demo` for `make demo`. Another
Python has environments of its own: `.venv-3.12`, `.venv-3.12-spark-4.1.1`. A shell sets one up by
`python -m tools.environment spark-4.1.1 --python 3.12`, a tool by `python_for("3.12", "spark-4.1.1")`.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from tools import uv

ROOT = uv.ROOT
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCKS = ROOT / "requirements"
# A line for another Spark locks that Spark only; all else is as in dev.lock.
SPARKS = tuple(sorted(path.stem for path in LOCKS.glob("spark-*.lock")))
LINES = ("dev", "demo", *SPARKS)
# Spark 3.5 needs setuptools on 3.12, and isn't promised to work on anything newer.
DEFAULT_PYTHON = ">=3.10,<3.13"
HINT = """\
Packages come from the index that pip is configured for (pip config list): can this machine reach it?
Pythons are those on the PATH and in pyenv; uv downloads another where it can. Install Python 3.10, 3.11 or 3.12,
or name one: make PYTHON=/path/to/python"""
# The tables of pyproject.toml that say what an installation looks like.
_INSTALLING = re.compile(r"^\[(build-system|project|project\..*|tool\.hatch.*)\]$")


@dataclass(frozen=True)
class PythonEnvironment:
    """One of the checkout's environments: whose lock file it has the packages of, and for which Python if for one."""

    line: str = "dev"
    version: str = ""

    @property
    def directory(self) -> Path:
        return ROOT / "-".join(filter(None, (".venv", self.version, self.line.removeprefix("dev"))))

    @property
    def python(self) -> Path:
        return self.directory / "bin" / "python"

    @property
    def stamp(self) -> Path:
        return self.directory / ".finished.json"

    def installed(self) -> dict[str, str]:
        """Return what the last finished set-up wrote, nothing if there was none."""
        try:
            content: dict[str, str] = json.loads(self.stamp.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content if self.python.exists() else {}

    def wanted(self) -> dict[str, str]:
        """Return what a set-up would write now."""
        python = self.version or os.environ.get("PYTHON") or self.installed().get("python", DEFAULT_PYTHON)
        return {"path": str(self.directory), "python": python, "digest": self._digest()}

    def _digest(self) -> str:
        content = hashlib.sha256(locked(self.line).encode())
        is_wanted = False
        for text in (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines():
            if text.startswith("["):
                is_wanted = _INSTALLING.match(text) is not None
            if is_wanted and text and not text.startswith("#"):
                content.update(text.encode())
        return content.hexdigest()

    def is_fresh(self) -> bool:
        """Return whether it was finished, at this path, from these lock files, with the Python asked for."""
        return self.installed() == self.wanted()

    def set_up(self, lock: int) -> None:
        """Make it or bring it up to date. The stamp goes first and comes last, so what is interrupted is made anew."""
        installed, wanted = self.installed(), self.wanted()
        self.stamp.unlink(missing_ok=True)
        tool = uv.find()
        env = uv.environment(tool)
        quiet = [] if sys.stderr.isatty() else ["--quiet"]

        def run(*command: str | Path) -> None:
            subprocess.run([tool, *quiet, *command], cwd=ROOT, env=env, pass_fds=[lock], check=True)

        if installed != {**wanted, "digest": installed.get("digest")}:
            shutil.rmtree(self.directory, ignore_errors=True)
            run("venv", "--no-project", "--python", wanted["python"], self.directory)
        too_old = "needs Python 3.10 or newer, and this is %d.%d"
        check = f"import sys; v = sys.version_info[:2]; sys.exit({too_old!r} % v if v < (3, 10) else 0)"
        subprocess.run([self.python, "-c", check], check=True)
        constraints = f"--build-constraints={LOCKS / 'dev.lock'}"
        options = [f"--python={self.python}", constraints]
        requirements = self.directory / "requirements.txt"
        requirements.write_text(locked(self.line), encoding="utf-8")
        run("pip", "sync", *options, "--compile-bytecode", "--require-hashes", requirements)
        run("pip", "install", *options, "--no-deps", "--editable", ROOT)
        self.stamp.write_text(json.dumps(wanted), encoding="utf-8")


def locked(line: str) -> str:
    """Return the requirements of a line. The file of another Spark pins that only; the rest is as in dev.lock."""
    own = (LOCKS / f"{line}.lock").read_text(encoding="utf-8")
    if line not in SPARKS:
        return own
    others = (LOCKS / "dev.lock").read_text(encoding="utf-8")
    for name in re.findall(r"^([\w.-]+)==", own, re.MULTILINE):
        others = re.sub(rf"^{re.escape(name)}==.*\n(?: .*\n)*", "", others, flags=re.MULTILINE)
    return others + own


@contextlib.contextmanager
def _locked() -> Generator[int, None, None]:
    """Let one process at a time set up; what it runs inherits the descriptor, and so holds the lock until it ends."""
    with (ROOT / ".venv.lock").open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another make, which is setting up an environment", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def python_for(version: str = "", line: str = "dev") -> Path:
    """Return the Python of an environment, set up first if need be; end the program with a message where that fails.

    Without a version it is the Python that the variable PYTHON names, else the one the environment has, else one that
    uv finds.
    """
    environment = PythonEnvironment(line, version)
    if environment.is_fresh():
        return environment.python
    with _locked() as lock:
        if not environment.is_fresh():
            name, started = environment.directory.name, time.monotonic()
            print(f"setting up {name}", file=sys.stderr, flush=True)
            try:
                environment.set_up(lock)
            except subprocess.CalledProcessError:
                raise SystemExit(f"{name} can't be set up.\n{HINT}") from None
            print(f"{name} is ready ({time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True)
    return environment.python


def main() -> None:
    """Set up the environment that the arguments name."""
    parser = argparse.ArgumentParser(description="Sets up one of the checkout's environments.")
    parser.add_argument("line", nargs="?", choices=LINES, default="dev")
    parser.add_argument("--python", default="", metavar="VERSION", help="such as 3.12")
    parser.add_argument("--is-fresh", action="store_true", help="only say by the status whether there is nothing to do")
    arguments = parser.parse_args()
    if arguments.is_fresh:
        sys.exit(not PythonEnvironment(arguments.line, arguments.python).is_fresh())
    python_for(arguments.python, arguments.line)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("interrupted: the next make sets up the environment anew")
