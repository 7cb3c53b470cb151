"""Iceberg's runtime for Spark, which the demo's tables need: fetched once and verified every time, like the servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from headwater.local.cache import cached_directory, expected_hashes, verify
from headwater.local.errors import MissingRequirementError
from headwater.local.fetch import Artifact, Fetcher, fetcher
from headwater.local.progress import announce

RUNTIMES: Final = {
    "3.5": Artifact("org.apache.iceberg", "iceberg-spark-runtime-3.5_2.12", "1.12.0"),
    "4.0": Artifact("org.apache.iceberg", "iceberg-spark-runtime-4.0_2.13", "1.11.0"),
    "4.1": Artifact("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.12.0"),
}
"""By version of Spark the newest one that its pyspark, with its Scala, takes."""
HASHES: Final = "iceberg.sha256"


def iceberg_runtime(
    spark: str,
    fetch_with: Callable[[], Fetcher] = fetcher,
    cache: Path | None = None,
    hashes: Mapping[str, str] | None = None,
) -> Path:
    """Return the jar for a version of pyspark. Its code runs in the user's JVM, so its SHA-256 is checked each time."""
    short = ".".join(spark.split(".")[:2])
    if short not in RUNTIMES:
        raise MissingRequirementError(
            f"there is no Iceberg for pyspark {spark}: install pyspark {', '.join(RUNTIMES)}, the newest for preference"
        )
    runtime = RUNTIMES[short]
    jar = jar_name(runtime)
    expected = {jar: (hashes or expected_hashes(HASHES))[jar]}

    def fill(place: Path) -> None:
        with announce(f"fetching Iceberg {runtime.version} for Spark {short} (50 MB; once)"):
            fetch_with().fetch((runtime,), place)

    name = jar.removesuffix(".jar")
    return cached_directory(name, fill, check=lambda place: verify(place, expected), cache=cache) / jar


def jar_name(runtime: Artifact) -> str:
    return f"{runtime.name}-{runtime.version}.jar"
