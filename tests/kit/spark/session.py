"""One Spark driver for the tests of a module: with Avro, without ports, and gone at the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.consumers.spark import AVRO_LIMITS
from tests.kit.spark.packages import package_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def avro_package() -> str:
    """Spark's Avro data source, as the pyspark that is installed needs it."""
    import pyspark

    return (
        f"org.apache.spark:spark-avro_{'2.12' if pyspark.__version__.startswith('3') else '2.13'}:{pyspark.__version__}"
    )


_held = ExitStack()


def hold(stack: ExitStack) -> None:
    """Keep what belongs to a driver that several modules share until another one starts, or until `release`."""
    global _held  # noqa: PLW0603 - a process has one JVM
    _held = stack


def release() -> None:
    """Stop the driver that is kept, if there is one."""
    _held.close()


@contextmanager
def spark_session(java_home: Path, **conf: str) -> Generator[SparkSession, None, None]:
    """A local driver with two cores. What it needs of Maven is kept in headwater's cache."""
    from pyspark.sql import SparkSession

    release()

    os.environ.update(JAVA_HOME=str(java_home), PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    builder: Any = SparkSession.builder
    settings = {
        "spark.master": "local[2]",
        **package_settings(java_home, conf.pop("spark.jars.packages", avro_package())),
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        # a short life on few cores
        "spark.driver.extraJavaOptions": f"{AVRO_LIMITS} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
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


def add_from_avro_to_sql(spark: SparkSession) -> None:
    """Give Spark 3.5 what Spark 4 has: from_avro as a function of SQL, here over the same expression of Spark's."""
    if not spark.version.startswith("3"):
        return
    inside: Any = spark  # pyspark's way into the JVM isn't public
    jvm = inside._jvm
    import_module("pyspark.java_gateway").ensure_callback_server_started(inside.sparkContext._gateway)

    class Build:
        def apply(self, arguments: Any) -> Any:
            content, schema, *options = [arguments.apply(n) for n in range(arguments.length())]
            chosen = jvm.scala.Predef.Map().empty()
            if options:
                chosen = jvm.org.apache.spark.sql.catalyst.expressions.ExprUtils.convertToMapData(options[0])
            return jvm.org.apache.spark.sql.avro.AvroDataToCatalyst(content, schema.eval(None).toString(), chosen)

        class Java:
            implements = ("scala.Function1",)

    registry = inside._jsparkSession.sessionState().functionRegistry()
    registry.createOrReplaceTempFunction("from_avro", Build(), "built-in")


def stop(spark: SparkSession) -> None:
    """Stop the driver and its JVM, which pyspark would keep until this process ends."""
    context: Any = type(spark.sparkContext)
    gateway = context._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=60)
    context._gateway = context._jvm = None
