"""Plans of one driver as the tap's own writer writes them, without anything having to run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from headwater.listeners.capture.jvm import Java

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class PlanReader:
    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._java = Java(spark.sparkContext)
        self._values = self._java.new("Values", self._java.new("Catalogs"), self._java.array("Eye", []))

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
