"""`make lock`: the exact pins of every environment, with hashes, from the ranges in pyproject.toml.

dev.lock is the whole; base.lock and demo.lock are parts of it with the same versions. UPGRADE=1 takes the newest of
everything.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tools import environment, indexes, progress

PINS = "requirements/pins.txt"
COMMON = ["--universal", "--python-version", "3.10", "--generate-hashes", "--quiet"]
# Whoever reads a lock file mustn't depend on the index of whoever wrote it.
PORTABLE = ["--no-emit-index-url", "--no-annotate", "--custom-compile-command", "make lock"]
LOCKS = {
    "dev": ["pyproject.toml", "--extra", "dev", "--constraints", PINS],
    "base": ["pyproject.toml", "--group", "editable", "--constraints", "requirements/dev.lock"],
    "demo": ["pyproject.toml", "--extra", "demo", "--group", "editable", "--constraints", "requirements/dev.lock"],
    "build": ["requirements/build.txt"],
    "spark4": ["requirements/spark4.txt"],
    "installer": ["requirements/installer.txt"],
    "virtualenv": ["requirements/virtualenv.txt"],
}


def compile_lock(uv: Path, name: str, sources: list[str], env: dict[str, str]) -> None:
    """Write requirements/<name>.lock; what it already pins stays as it is unless UPGRADE is set."""
    output = f"requirements/{name}.lock"
    upgrade = ["--upgrade"] if os.environ.get("UPGRADE") else []
    command = [str(uv), "pip", "compile", *sources, *COMMON, *PORTABLE, *upgrade, "--output-file", output]
    progress.run(f"locking {output}", command, env=env, cwd=environment.ROOT)


def main() -> int:
    """Compile every lock file, the whole before its parts."""
    env = indexes.with_uv_settings(indexes.clean_environment(), environment.pip_settings())
    uv = environment.uv_of_environment()
    try:
        for name, sources in LOCKS.items():
            compile_lock(uv, name, sources, env)
    except progress.CommandFailedError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(LOCKS)} lock files written to requirements/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
