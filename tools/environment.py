"""The checkout's own virtual environment, .venv: made once, brought up to the lock files, believed only when finished.

Levels: `base` is what headwater itself needs, `demo` also what `make demo` runs on, `dev` is everything that checks,
tests and benchmarks need. A stamp written as the very last step says what is installed; while it is missing or says
something else, make repairs or rebuilds.
"""

from __future__ import annotations

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
from importlib.util import find_spec
from pathlib import Path

from tools import indexes, progress

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / ".finished.json"
UNFINISHED = VENV / ".unfinished"
LOCKS = ROOT / "requirements"
LEVELS = ("base", "demo", "dev")
HINT = "packages come from the index that pip is configured for (pip config list): can this machine reach it?"
OWN_VERSION = ".".join(map(str, sys.version_info[:2]))
# The tables of pyproject.toml that say what an installation looks like.
_INSTALLING = re.compile(r"^\[(build-system|project|project\..*|dependency-groups|tool\.hatch.*)\]$")


def digest(level: str) -> str:
    """A hash of everything the environment is made from."""
    content = hashlib.sha256((LOCKS / f"{level}.lock").read_bytes())
    wanted = False
    for line in (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            wanted = _INSTALLING.match(line) is not None
        if wanted and line and not line.startswith("#"):
            content.update(line.encode())
    return content.hexdigest()


def read_stamp() -> dict[str, str]:
    """What the last finished set-up wrote; empty when there was none."""
    try:
        stamp: dict[str, str] = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp


def is_fresh(level: str) -> bool:
    """Whether .venv holds at least this level, finished, for this path and these lock files."""
    stamp = read_stamp()
    installed = stamp.get("level", "")
    if installed not in LEVELS or LEVELS.index(installed) < LEVELS.index(level):
        return False
    if stamp.get("path") != str(VENV) or stamp.get("digest") != digest(installed):
        return False
    return PYTHON.exists() and _is_python_asked_for(stamp)


def _is_python_asked_for(stamp: dict[str, str]) -> bool:
    return not os.environ.get("PYTHON") or stamp.get("python") == OWN_VERSION


def _version() -> str:
    """The version of .venv's Python; empty if that, or its pip, doesn't work."""
    probe = "import sys, pip; print('.'.join(map(str, sys.version_info[:2])))"
    try:
        return subprocess.run([PYTHON, "-c", probe], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def cache_directory() -> Path:
    """Where headwater keeps what it fetches, outside the checkout."""
    named = os.environ.get("HEADWATER_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headwater"


@contextlib.contextmanager
def lock() -> Generator[int, None, None]:
    """Let one make at a time work on .venv; commands inherit the descriptor and so hold the lock until they end."""
    with (ROOT / ".venv.lock").open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another make, which is setting up .venv", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


class Setup:
    """One set-up under the lock: from whatever .venv is now to a finished environment of a level."""

    def __init__(self, level: str, lock_descriptor: int) -> None:
        self.level = level
        self.env = indexes.clean_environment()
        self._lock = lock_descriptor

    def run(self, title: str, *command: str | Path, env: dict[str, str] | None = None) -> str:
        return progress.run(title, command, env=env or self.env, cwd=ROOT, keep_open=[self._lock])

    def perform(self) -> None:
        """Do what is needed, the stamp last: an interruption anywhere leaves an environment that nobody believes."""
        installed = read_stamp().get("level", self.level)
        level = max(self.level, installed, key=LEVELS.index)
        if not _can_be_updated():
            self._create()
        UNFINISHED.touch()
        STAMP.unlink(missing_ok=True)
        self._install(level)
        stamp = {"level": level, "digest": digest(level), "path": str(VENV), "python": _version()}
        STAMP.write_text(json.dumps(stamp), encoding="utf-8")
        UNFINISHED.unlink()

    def _create(self) -> None:
        shutil.rmtree(VENV, ignore_errors=True)
        VENV.mkdir()
        UNFINISHED.touch()
        if find_spec("venv") and find_spec("ensurepip"):
            self.run("making .venv", sys.executable, "-m", "venv", VENV)
        else:
            env = {**self.env, "PYTHONPATH": str(self._virtualenv())}
            self.run("making .venv", sys.executable, "-m", "virtualenv", "--no-periodic-update", VENV, env=env)

    def _virtualenv(self) -> Path:
        """virtualenv in our cache, for a Python that has pip but not the means to make an environment."""
        locked = LOCKS / "virtualenv.lock"
        home = cache_directory() / f"virtualenv-{hashlib.sha256(locked.read_bytes()).hexdigest()[:16]}"
        if not home.exists():
            partial = home.with_name(f"{home.name}.{os.getpid()}")
            pip = [sys.executable, "-m", "pip", "install", "--target", str(partial)]
            self.run("fetching virtualenv", *pip, "--require-hashes", "-r", locked)
            partial.rename(home)
        return home

    def _install(self, level: str) -> None:
        locked = LOCKS / f"{level}.lock"
        title = f"installing the packages of requirements/{locked.name}"
        try:
            self._install_by_uv(title, locked)
        except progress.CommandFailedError as error:
            print(f"uv couldn't do it, so pip does ({str(error).splitlines()[-1].strip()})", flush=True)
            self._pip(title, "--require-hashes", "-r", locked)
            self._pip("installing headwater", "--no-deps", "--no-build-isolation", "-e", ROOT)

    def _install_by_uv(self, title: str, locked: Path) -> None:
        self._pip("installing uv", "--require-hashes", "-r", LOCKS / "installer.lock")
        env = indexes.with_uv_settings(self.env, pip_settings())
        uv, target = uv_of_environment(), f"--python={PYTHON}"
        build = f"--build-constraints={LOCKS / 'build.lock'}"
        self.run(title, uv, "pip", "sync", target, "--compile-bytecode", "--require-hashes", build, locked, env=env)
        editable = ["--no-deps", "--no-build-isolation", "--editable", str(ROOT)]
        self.run("installing headwater", uv, "pip", "install", target, *editable, env=env)

    def _pip(self, title: str, *arguments: str | Path) -> None:
        self.run(title, PYTHON, "-m", "pip", "install", "--disable-pip-version-check", *arguments)


def _can_be_updated() -> bool:
    """Whether .venv works, was never left half done, stands where it was made, and is the Python asked for."""
    stamp, version = read_stamp(), _version()
    moved = stamp.get("path", str(VENV)) != str(VENV)
    other = bool(os.environ.get("PYTHON")) and version != OWN_VERSION
    return bool(version) and not UNFINISHED.exists() and not moved and not other


def pip_settings() -> str:
    """pip's configuration as pip itself understands it."""
    listing = [str(PYTHON), "-m", "pip", "config", "list"]
    return subprocess.run(listing, capture_output=True, text=True, check=False, env=indexes.clean_environment()).stdout


def uv_of_environment() -> Path:
    """The uv that was installed into .venv."""
    return VENV / "bin" / "uv"


def main() -> int:
    """Bring .venv to the level asked for; one clear account when that can't be done."""
    level, started = sys.argv[1], time.monotonic()
    with lock() as descriptor:
        if is_fresh(level):
            return 0
        try:
            Setup(level, descriptor).perform()
        except progress.CommandFailedError as error:
            print(error, HINT, sep="\n", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("interrupted; the next make starts .venv afresh", file=sys.stderr)
            return 130
    print(f".venv is ready ({time.monotonic() - started:.0f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
