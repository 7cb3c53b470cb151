"""One Spark driver for the tests of a module: with Avro, without ports, and gone at the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.local.cache import cache_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def avro_package() -> str:
    """Spark's Avro data source, as the pyspark that is installed needs it."""
    import pyspark

    return (
        f"org.apache.spark:spark-avro_{'2.12' if pyspark.__version__.startswith('3') else '2.13'}:{pyspark.__version__}"
    )


@contextmanager
def spark_session(java_home: Path, **conf: str) -> Iterator[SparkSession]:
    """A local driver with two cores. What it needs of Maven is kept in headwater's cache."""
    from pyspark.sql import SparkSession

    os.environ.update(JAVA_HOME=str(java_home), PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    builder: Any = SparkSession.builder
    settings = {
        "spark.master": "local[2]",
        "spark.jars.packages": avro_package(),
        "spark.jars.ivy": str(cache_directory() / "ivy"),
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # a short life on few cores
        "spark.sql.shuffle.partitions": "2",
        **conf,
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        stop(spark)


def stop(spark: SparkSession) -> None:
    """Stop the driver and its JVM, which pyspark would keep until this process ends."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=60)
    SparkContext._gateway = SparkContext._jvm = None
