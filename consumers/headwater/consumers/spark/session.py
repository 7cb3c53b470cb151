"""What a Spark session needs before it can read Avro. Imported only when a query is built."""

from __future__ import annotations

import importlib
import logging
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from headwater.errors import PluginError
from headwater.plugins import extra_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)
AVRO_LIMITS: Final = " ".join(
    f"-Dorg.apache.avro.limits.{what}.maxLength=1000000" for what in ("bytes", "collectionItems", "string")
)
"""Java options that keep Avro from allocating much more memory than a message has bytes."""


def functions() -> Any:
    """Return pyspark.sql.functions. Raises MissingSparkError without pyspark."""
    try:
        return importlib.import_module("pyspark.sql.functions")
    except ImportError as e:
        raise MissingSparkError(
            "reading events with Spark needs pyspark, which isn't installed here: use the interpreter of the cluster, "
            f"or {extra_command('spark')}"
        ) from e


def require_avro(spark: SparkSession) -> None:
    """Raise a MissingSparkError that names the package that this session lacks. With Spark Connect only a query can
    tell."""
    jvm = getattr(spark, "_jvm", None)
    if jvm is None or _is_class(jvm.org.apache.spark.sql.avro.AvroDataToCatalyst):
        return
    package = f"org.apache.spark:spark-avro_{_scala(jvm)}:{spark.version}"
    raise MissingSparkError(
        f"this Spark session has no Avro data source: start it with --packages {package} "
        f"(or with the conf spark.jars.packages={package})"
    )


def warn_without_limits(spark: SparkSession) -> None:
    """Warn if limits are missing: Java's Avro allocates the length that the bytes claim before it checks it."""
    local = str(spark.conf.get("spark.master", "")).startswith("local")
    key = f"spark.{'driver' if local else 'executor'}.extraJavaOptions"
    options = str(spark.conf.get(key, ""))
    if not all(option.partition("=")[0] in options for option in AVRO_LIMITS.split()):
        warn_once(key)


@cache
def warn_once(key: str) -> None:
    _log.warning("%s sets no limits for Avro: some 30 bad bytes can end a JVM. Add to it: %s", key, AVRO_LIMITS)


def _scala(jvm: Any) -> str:
    """Return Spark's Scala version as it stands in package names."""
    return ".".join(jvm.scala.util.Properties.versionNumberString().split(".")[:2])


def _is_class(found: Any) -> bool:
    """Return whether py4j found a class. It takes missing classes for packages."""
    return type(found).__name__ == "JavaClass"


class MissingSparkError(PluginError):
    """pyspark or Spark's Avro data source is missing. The message says what to install."""
