"""The Thrift server: clients send SQL over JDBC or ODBC, and this driver runs it."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any, Final

from headwater.listeners.capture.jvm import root_message
from headwater.listeners.hosting.driver import HostingError, has_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PORT: Final = "spark.hadoop.hive.server2.thrift.port"
_THRIFT_CLASS: Final = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
_BINDING_SECONDS: Final = 60.0
_ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - looked for, not bound


class ThriftServer:
    """As Spark's start-thriftserver.sh starts it, but in this driver."""

    def __init__(self) -> None:
        self.name = "Thrift JDBC/ODBC Server"
        self.defaults = {"spark.sql.catalogImplementation": "hive"}
        self._server: Any = None

    def check(self, jvm: Any) -> None:
        if not has_class(jvm, _THRIFT_CLASS):
            raise HostingError(
                "the Thrift server isn't on the class path: it takes a Spark that was built with Hive, as pyspark is"
            )

    def start(self, spark: SparkSession) -> str:
        inside: Any = spark
        context: Any = spark.sparkContext
        try:
            server = context._jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
            self._server = server.startWithContext(inside._jsparkSession.sqlContext())
            services = self._server.getServices()
            listening = next(each for each in services if _has_method(each, "getPortNumber"))
            host, port = str(listening.getServerIPAddress().getHostAddress()), int(listening.getPortNumber())
        except Exception as e:  # py4j's errors have no root that can be imported without a JVM
            raise HostingError(f"the Thrift server can't be started: {root_message(e)}") from e
        self._await(host, port, context._gateway.proc)
        return f"jdbc:hive2://{host}:{port}/"

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()

    @staticmethod
    def _await(host: str, port: int, jvm: Any) -> None:
        """It binds in a thread of its own, and where that fails it ends the whole JVM."""
        deadline = time.monotonic() + _BINDING_SECONDS
        while jvm.poll() is None and time.monotonic() < deadline:
            if _accepts_connections("127.0.0.1" if host == _ANY_ADDRESS else host, port):
                return
            time.sleep(0.05)
        raise HostingError(f"the Thrift server can't listen on {host}:{port} ({PORT}): Spark's log says why")


def _accepts_connections(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1.0):
            return True
    except OSError:
        return False


def _has_method(each: Any, method: str) -> bool:
    """py4j says of every name that an object has it."""
    return any(each_method.getName() == method for each_method in each.getClass().getMethods())
