"""Iceberg's runtime for Spark, which the demo's tables need: fetched once and verified every time, like the servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from headwater.local.cache import cached_directory, expected_hashes, verify
from headwater.local.errors import MissingRequirementError
from headwater.local.fetch import Artifact, Fetcher, fetcher
from headwater.local.progress import announce

VERSION: Final = "1.10.1"
RUNTIMES: Final = {"3.5": "3.5_2.12", "4.0": "4.0_2.13"}
"""By version of Spark the one that its pyspark, with its Scala, takes."""
HASHES: Final = f"iceberg-{VERSION}.sha256"


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
            f"there is no Iceberg {VERSION} for pyspark {spark}: install pyspark {' or '.join(RUNTIMES)}"
        )
    name = f"iceberg-spark-runtime-{RUNTIMES[short]}"
    jar = f"{name}-{VERSION}.jar"
    expected = {jar: (hashes or expected_hashes(HASHES))[jar]}

    def fill(place: Path) -> None:
        with announce(f"fetching Iceberg {VERSION} for Spark {short} (46 MB; once)"):
            fetch_with().fetch((Artifact("org.apache.iceberg", name, VERSION),), place)

    return cached_directory(f"{name}-{VERSION}", fill, check=lambda place: verify(place, expected), cache=cache) / jar
