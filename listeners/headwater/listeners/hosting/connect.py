"""Spark Connect: clients send plans over gRPC, and this driver runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from headwater.listeners.capture.jvm import root_message
from headwater.listeners.hosting.driver import HostingError, has_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLUGIN: Final = "org.apache.spark.sql.connect.SparkConnectPlugin"
PORT: Final = "spark.connect.grpc.binding.port"
_ADDRESS: Final = "spark.connect.grpc.binding.address"
_DEFAULT_PORT: Final = "15002"


class ConnectServer:
    """By Spark's own plugin, started when headwater listens: a client's first statement is captured too."""

    def __init__(self) -> None:
        self.name = "Spark Connect server"
        self.defaults: dict[str, str] = {}
        self._plugin: Any = None

    def check(self, jvm: Any) -> None:
        if has_class(jvm, PLUGIN):
            return
        scala = str(jvm.scala.util.Properties.versionNumberString()).rpartition(".")[0]
        package = f"org.apache.spark:spark-connect_{scala}:{jvm.org.apache.spark.package.SPARK_VERSION()}"
        raise HostingError(f"Spark Connect isn't on the class path: add -- --packages {package}")

    def start(self, spark: SparkSession) -> str:
        context: Any = spark.sparkContext
        conf = context._conf
        address = f"{conf.get(_ADDRESS, conf.get('spark.driver.host', 'localhost'))}:{conf.get(PORT, _DEFAULT_PORT)}"
        if PLUGIN not in [each.strip() for each in conf.get("spark.plugins", "").split(",")]:
            plugin = context._jvm.org.apache.spark.sql.connect.SparkConnectPlugin().driverPlugin()
            try:
                plugin.init(context._jsc.sc(), None)
            except Exception as e:  # py4j's errors have no root that can be imported without a JVM
                raise HostingError(f"Spark Connect can't listen on {address} ({PORT}): {root_message(e)}") from e
            self._plugin = plugin
        return f"sc://{address}"

    def stop(self) -> None:
        if self._plugin is not None:
            self._plugin.shutdown()
