"""uv on a machine that may lack it: the one on the PATH, else the one that requirements/dev.lock pins, fetched by pip.

`python -m tools.uv …` runs uv with pip's settings (tools/indexes.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.machinery import PathFinder
from pathlib import Path

from tools import indexes

ROOT = Path(__file__).resolve().parent.parent


def find() -> Path:
    """Return a uv that runs, is as new as pyproject.toml requires, and isn't in an environment of this checkout."""
    folders = (folder for folder in os.get_exec_path() if not Path(folder).is_relative_to(ROOT))
    found = shutil.which("uv", path=os.pathsep.join(folders))
    if found and subprocess.run([found, "python", "dir"], cwd=ROOT, capture_output=True, check=False).returncode == 0:
        return Path(found)
    lock = (ROOT / "requirements/dev.lock").read_text(encoding="utf-8")
    pin = "".join(re.findall(r"^uv==.*\n(?: +--hash=.*\n?)+", lock, re.MULTILINE))
    home = cache_directory() / f"uv-{hashlib.sha256(pin.encode()).hexdigest()[:16]}"
    if not home.exists():
        _fetch(pin, home)
    return home / "bin/uv"


def _fetch(pin: str, home: Path) -> None:
    print("fetching uv", file=sys.stderr, flush=True)
    home.parent.mkdir(parents=True, exist_ok=True)
    env = indexes.clean_environment()
    with tempfile.TemporaryDirectory(dir=home.parent) as temporary:
        requirement, partial = Path(temporary, "uv.txt"), Path(temporary, "uv")
        requirement.write_text(pin, encoding="utf-8")
        pip: list[str | Path] = [sys.executable, "-m", "pip", "install", "--target", partial]
        if not _has_pip():
            subprocess.run([sys.executable, "-m", "venv", partial], env=env, check=True)
            pip = [partial / "bin/python", "-m", "pip", "install"]
        options = ["--quiet", "--only-binary=:all:", "--require-hashes"]
        subprocess.run([*pip, *options, "-r", requirement], env=env, check=True)
        with contextlib.suppress(OSError):  # another process was quicker
            partial.rename(home)


def _has_pip() -> bool:
    """Look on the path alone: hooks of setuptools, which all importers are asked through, warn where a distutils is
    imported already."""
    return PathFinder.find_spec("pip") is not None


def environment(uv: Path) -> dict[str, str]:
    """Return the environment to run uv in: pip's settings, and the PATH with the Pythons of pyenv at its end.

    The commands that pyenv puts on the PATH only run for the versions that are chosen at the moment.
    """
    beside = uv.with_name("python")  # where uv had to be fetched without a pip of our own
    env = indexes.uv_environment(Path(sys.executable) if _has_pip() or not beside.exists() else beside)
    pythons = Path(env.get("PYENV_ROOT") or Path.home() / ".pyenv").glob("versions/3.*/bin")
    return {**env, "PATH": os.pathsep.join([*os.get_exec_path(), *map(str, sorted(pythons))])}


def cache_directory() -> Path:
    """Return where headwater keeps what it fetches, outside the checkout."""
    shared = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("HEADWATER_CACHE") or shared / "headwater")


if __name__ == "__main__":
    own = Path(sys.executable).with_name("uv")  # the version of the lock, which writes locks as they are
    chosen = own if own.exists() else find()
    os.execve(chosen, [str(chosen), *sys.argv[1:]], environment(chosen))  # noqa: S606 - no shell is wanted
