"""Plans of one driver as the tap's own writer writes them, without anything having to run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from headwater.listeners.capture.jvm import JavaClasses

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class PlanReader:
    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._java = JavaClasses(spark.sparkContext)
        inside: Any = spark  # pyspark's way into the JVM isn't public
        arrays = inside.sparkContext._jvm.java.lang.reflect.Array
        extractors = arrays.newInstance(self._java.load("FormatExtractor"), 0)
        self._values = self._java.new("ValueWriter", self._java.new("CatalogWriter"), extractors)

    def sql(self, text: str) -> dict[str, Any]:
        """The content of the plan of a statement. Commands are run by this, queries aren't."""
        return self.of(self._spark.sql(text))

    def of(self, frame: DataFrame) -> dict[str, Any]:
        inside: Any = frame  # pyspark's way into the JVM isn't public
        return self.of_plan(inside._jdf.queryExecution().analyzed())

    def of_plan(self, plan: Any) -> dict[str, Any]:
        """The content of a plan of the JVM's."""
        writer = self._java.new("PlanWriter", self._values, False)
        content: dict[str, Any] = json.loads(writer.finish(writer.node(plan)))
        return content
