"""Iceberg's runtime for Spark, which `headwater demo` has its tables in: fetched once, like the servers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from headwater.local.cache import kept
from headwater.local.errors import DamagedDownloadError, MissingRequirementError
from headwater.local.fetch import Artifact, Fetcher, fetcher
from headwater.local.progress import announced

VERSION: Final = "1.10.1"
RUNTIMES: Final = {"3.5": "3.5_2.12", "4.0": "4.0_2.13"}
"""By version of Spark the one that its pyspark, with its Scala, takes."""


def iceberg_runtime(spark: str, fetch_with: Callable[[], Fetcher] = fetcher, cache: Path | None = None) -> Path:
    """The jar for a version of pyspark."""
    short = ".".join(spark.split(".")[:2])
    if short not in RUNTIMES:
        raise MissingRequirementError(
            f"there is no Iceberg {VERSION} for pyspark {spark}: install pyspark {' or '.join(RUNTIMES)}"
        )
    name = f"iceberg-spark-runtime-{RUNTIMES[short]}"

    def fill(place: Path) -> None:
        with announced(f"fetching Iceberg {VERSION} for Spark {short} (46 MB; once)"):
            fetch_with().fetch((Artifact("org.apache.iceberg", name, VERSION),), place)

    def check(place: Path) -> None:
        if not list(place.glob(f"{name}-*.jar")):
            raise DamagedDownloadError(f"{name} isn't in {place}: remove that directory, and try again")

    return next(kept(f"{name}-{VERSION}", fill, check=check, cache=cache).glob(f"{name}-*.jar"))
