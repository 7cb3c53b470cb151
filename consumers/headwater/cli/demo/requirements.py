"""What the demo needs on this machine, found before anything is begun."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from headwater.errors import ConfigurationError
from headwater.local import JavaRuntime, MissingRequirementError, java
from headwater.local.errors import FetchError
from headwater.local.iceberg import iceberg_runtime
from headwater.local.java_for_spark import java_home_for_spark
from headwater.plugins import extra_command


@dataclass(frozen=True)
class Requirements:
    spark: Path
    """The home of the Spark that pyspark carries."""
    spark_version: str
    java: JavaRuntime
    java_home: Path
    """What JAVA_HOME has to be for that Spark."""
    iceberg: Path


def find_requirements(iceberg: Path | None = None) -> Requirements:
    """Return what is there; what is missing is an error that says how to get it."""
    spark, spark_version = _spark()
    chosen = java()
    jar = _given_jar(iceberg) if iceberg else _iceberg(spark_version)
    return Requirements(spark, spark_version, chosen, java_home_for_spark(chosen, spark_version), jar)


def make_directory(keep: Path | None) -> Path:
    """Return a directory that is the demo's own."""
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="headwater-demo-"))
    place = keep.expanduser().absolute()
    if any(character.isspace() or character in ",\\" for character in str(place)):
        raise ConfigurationError(f"Spark's configuration takes no blanks, commas or backslashes in a path: {place}")
    try:
        place.mkdir(parents=True, exist_ok=True)
        is_empty = not any(place.iterdir())
    except OSError as e:
        raise ConfigurationError(f"{place} can't be used ({e.strerror}): name another directory by --keep") from e
    if not is_empty:
        raise ConfigurationError(f"there is something in {place} already: name a new directory by --keep")
    return place


def _spark() -> tuple[Path, str]:
    spec = find_spec("pyspark")
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        found = None
    if spec is None or not spec.submodule_search_locations or found is None:
        raise MissingRequirementError(
            f"the demo runs Spark, and pyspark isn't installed here: {extra_command('demo')}, "
            "or `make demo` in a checkout"
        )
    return Path(next(iter(spec.submodule_search_locations))), found


def _iceberg(spark_version: str) -> Path:
    try:
        return iceberg_runtime(spark_version)
    except FetchError as e:
        raise FetchError(
            f"{e}\nThe demo's tables are Iceberg's, whose jar is fetched once from Maven Central or your mirror of it. "
            "Without a network: headwater demo --iceberg iceberg-spark-runtime-….jar"
        ) from e


def _given_jar(jar: Path) -> Path:
    if not jar.is_file():
        raise ConfigurationError(f"{jar} is no file: --iceberg names the jar of iceberg-spark-runtime")
    return jar.absolute()
