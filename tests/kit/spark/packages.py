"""Packages of Maven that drivers of tests need, in a cache that all processes share.

Ivy takes no lock: two processes that fetch the same file end with "impossible to move part file", or with half of it.
So what isn't there yet is fetched by one process at a time, before the drivers that need it start.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Final

from headwater.local.cache import cache_directory

_SECONDS: Final = 500
_FETCH: Final = """
import sys
from pyspark.sql import SparkSession
packages, cache = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder.config("spark.jars.packages", packages).config("spark.jars.ivy", cache).getOrCreate().stop()
"""


def package_settings(java_home: Path, packages: str) -> dict[str, str]:
    """Return the settings with which a driver finds these packages, which are in the cache by then."""
    cache = cache_directory() / "ivy"
    if packages:
        _fetch(java_home, packages, cache)
    return {"spark.jars.packages": packages, "spark.jars.ivy": str(cache)}


def _fetch(java_home: Path, packages: str, cache: Path) -> None:
    done = cache / f"{sha256(packages.encode()).hexdigest()[:16]}.fetched"
    if done.exists():
        return
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "fetching.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists():
            return
        environment = {**os.environ, "JAVA_HOME": str(java_home), "SPARK_LOCAL_IP": "127.0.0.1"}
        command = [sys.executable, "-c", _FETCH, packages, str(cache)]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False)
        assert ended.returncode == 0, ended.stderr[-3000:]
        done.touch()
