"""`make test-spark4`: the tests of capture on Spark 4, with the environment's other packages as they are.

Spark 4's pyspark is put into a directory of headwater's cache, once for each lock file, and stands before .venv's own
on the path. Arguments are handed on to pytest.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools import environment, indexes, progress

LOCK = environment.LOCKS / "spark4.lock"
TESTS = ("tests/matrix", "tests/integration/test_column_lineage.py")
# A file stays in one worker, which keeps its Spark.
PARALLEL = ("--numprocesses", "2", "--dist", "loadfile")


def directory() -> Path:
    """Where Spark 4's pyspark is, fetched if need be."""
    home = environment.cache_directory() / f"spark4-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]}"
    if home.exists():
        return home
    partial = home.with_name(f"{home.name}.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    env = indexes.with_uv_settings(indexes.clean_environment(), environment.pip_settings())
    build = f"--build-constraints={environment.LOCKS / 'build.lock'}"
    install = [str(environment.uv_of_environment()), "pip", "install", f"--python={environment.PYTHON}", "--no-deps"]
    command = [*install, build, "--require-hashes", "-r", str(LOCK), "--target", str(partial)]
    progress.run("fetching Spark 4", command, env=env)
    partial.rename(home)
    return home


def pytest_environment() -> dict[str, str]:
    """This process's environment with Spark 4 before any other."""
    path = os.pathsep.join(filter(None, (str(directory()), os.environ.get("PYTHONPATH"))))
    return {**indexes.clean_environment(), "PYTHONPATH": path}


def run(*arguments: str) -> int:
    """Run pytest on Spark 4; its status."""
    try:
        env = pytest_environment()
    except progress.CommandFailedError as error:
        print(error, environment.HINT, sep="\n", file=sys.stderr)
        return 1
    pytest = [str(environment.PYTHON), "-m", "pytest", "--no-skips", *arguments]
    return subprocess.run(pytest, cwd=environment.ROOT, check=False, env=env).returncode


def main() -> int:
    """All that applies, or what the arguments say."""
    return run(*(sys.argv[1:] or ["-m", "not long and not spark3", *PARALLEL, *TESTS]))


if __name__ == "__main__":
    sys.exit(main())
