"""Which formats and connectors exist for which Spark, and as which packages: the newest of each.

A module that needs one says so, `pytestmark = pytest.mark.needs("iceberg")`, and isn't chosen on a Spark without it.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

SPARK: Final = version("pyspark")
SHORT: Final = ".".join(SPARK.split(".")[:2])
SCALA: Final = "2.12" if SHORT.startswith("3") else "2.13"
MAJOR, MINOR = map(int, SHORT.split("."))


def _delta(artifact: str, release: str) -> tuple[str, ...]:
    return (f"io.delta:{artifact}:{release}", f"io.delta:delta-storage:{release}")


def _iceberg(runtime: str, release: str) -> tuple[str, ...]:
    return (f"org.apache.iceberg:iceberg-spark-runtime-{runtime}:{release}",)


_PACKAGES: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "iceberg": {
        "3.5": _iceberg("3.5_2.12", "1.12.0"),
        "4.0": _iceberg("4.0_2.13", "1.11.0"),
        "4.1": _iceberg("4.1_2.13", "1.12.0"),
    },
    "delta": {
        "3.5.0": (),  # from 3.3 on it extends a class that this Spark lacks, and 3.2 has no hooks that we know
        "3.5": _delta("delta-spark_2.12", "3.3.3"),
        "4.0": _delta("delta-spark_4.0_2.13", "4.4.0"),
        "4.1": _delta("delta-spark_4.1_2.13", "4.4.0"),
        "4.2": _delta("delta-spark_4.2_2.13", "4.4.0"),
    },
    "paimon": {"3.5": ("org.apache.paimon:paimon-spark-3.5:0.9.0",)},
    "hudi": {"3.5": ("org.apache.hudi:hudi-spark3.5-bundle_2.12:1.1.1",)},
    # Not every release of Spark has connectors; those of a line's other release work.
    "kafka": {
        "3.5": ("org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.7",),
        "4.0": ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",),
        "4.1": ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1",),
    },
}


def packages(name: str) -> tuple[str, ...]:
    """The packages of a format for the Spark that is installed; none where it doesn't exist for it."""
    return packages_for(name, SPARK)


def packages_for(name: str, spark: str) -> tuple[str, ...]:
    """The same for another Spark, such as 4.1.1: its line's, where a release has none of its own."""
    of_format = _PACKAGES[name]
    return of_format.get(spark, of_format.get(spark.rpartition(".")[0], ()))


def lacking(names: tuple[str, ...]) -> list[str]:
    """Those of these formats that don't exist for the Spark that is installed."""
    return [name for name in names if not packages(name)]
