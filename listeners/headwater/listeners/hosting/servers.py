"""Servers that run until somebody stops them: by SIGTERM, Ctrl-C or SIGHUP.

Spark Connect: clients send plans over gRPC, and this driver runs them.

The Thrift server: clients send SQL over JDBC or ODBC, and this driver runs it.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from headwater.events.jobs import JobStatus
from headwater.listeners.capture.jvm import root_message
from headwater.listeners.hosting.driver import (
    HostingError,
    Launch,
    end_of_jvm,
    has_class,
    host,
    make_session,
    run_with_timeout,
    start_jvm,
    stop,
)
from headwater.listeners.installation.contexts import contexts
from headwater.listeners.jobs import ENDED, RunEnd

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


PLUGIN: Final = "org.apache.spark.sql.connect.SparkConnectPlugin"
CONNECT_PORT: Final = "spark.connect.grpc.binding.port"
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
        address = (
            f"{conf.get(_ADDRESS, conf.get('spark.driver.host', 'localhost'))}:{conf.get(CONNECT_PORT, _DEFAULT_PORT)}"
        )
        if PLUGIN not in [each.strip() for each in conf.get("spark.plugins", "").split(",")]:
            plugin = context._jvm.org.apache.spark.sql.connect.SparkConnectPlugin().driverPlugin()
            try:
                plugin.init(context._jsc.sc(), None)
            except Exception as e:  # py4j's errors have no root that can be imported without a JVM
                raise HostingError(
                    f"Spark Connect can't listen on {address} ({CONNECT_PORT}): {root_message(e)}"
                ) from e
            self._plugin = plugin
        return f"sc://{address}"

    def stop(self) -> None:
        if self._plugin is not None:
            self._plugin.shutdown()


THRIFT_PORT: Final = "spark.hadoop.hive.server2.thrift.port"
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
            listening = next(service for service in services if _has_method(service, "getPortNumber"))
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
        raise HostingError(f"the Thrift server can't listen on {host}:{port} ({THRIFT_PORT}): Spark's log says why")


def _accepts_connections(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1.0):
            return True
    except OSError:
        return False


def _has_method(each: Any, method: str) -> bool:
    """py4j says of every name that an object has it."""
    return any(each_method.getName() == method for each_method in each.getClass().getMethods())


_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_CHECK_SECONDS: Final = 1.0
_STOP_SECONDS: Final = 10.0


class HostedServer(Protocol):
    """One that runs statements for its clients in this driver."""

    @property
    def name(self) -> str:
        """Also the application's, where it has none."""
        ...

    @property
    def defaults(self) -> Mapping[str, str]:
        """Its configuration where nobody says otherwise."""
        ...

    def check(self, jvm: Any) -> None:
        """A HostingError if it can't be had here; before Spark is started."""
        ...

    def start(self, spark: SparkSession) -> str:
        """Listen; the address that clients come to. A HostingError if that can't be."""
        ...

    def stop(self) -> None:
        """Nobody is served any more."""
        ...


def serve(servers: Sequence[HostedServer], launch: Launch, ready: Callable[[str, str], None]) -> NoReturn:
    """Serve until a signal comes, and then stop in order and die of it. `ready` is called with each server's name and
    address when clients can come."""
    host(lambda: _serve(servers, ready), launch)


def _serve(servers: Sequence[HostedServer], ready: Callable[[str, str], None]) -> RunEnd:
    jvm = start_jvm()
    for server in servers:
        server.check(jvm)
    spark = make_session(servers[0].name, {key: text for each in servers for key, text in each.defaults.items()})
    signals = _StopSignals()
    signals.watch()
    running: list[HostedServer] = []
    ending = ENDED
    try:
        for server in servers:
            running.append(server)
            ready(server.name, server.start(spark))
        ending = _wait(signals, spark)
    finally:
        contexts.set_expected_end(ending)
        for server in reversed(running):
            run_with_timeout(_STOP_SECONDS, server.stop)
        stop(spark)
    contexts.exits.final_signal = signals.received
    return ending


def _wait(signals: _StopSignals, spark: SparkSession) -> RunEnd:
    """Until a signal comes, or Spark is gone."""
    context: Any = spark.sparkContext
    process = context._gateway.proc
    while True:
        if signals.wait(_CHECK_SECONDS) is not None:
            return RunEnd(status=JobStatus.KILLED, signal=signals.received)
        if process.poll() is not None:
            died = end_of_jvm(process.returncode)
            return died if died.exit_code else replace(ENDED, exit_code=1)
        if context._jsc.sc().isStopped():
            return replace(ENDED, exit_code=1)


class _StopSignals:
    """The signals that stop a server. The first one is noted only: a second one kills at once."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._out, self._in = os.pipe()

    def watch(self) -> None:
        for each in _SIGNALS:
            if signal.getsignal(each) is not signal.SIG_IGN:  # nohup
                signal.signal(each, self._note)

    def wait(self, seconds: float) -> signal.Signals | None:
        """The signal that came; None if none has come so far."""
        if self.received is None:
            select.select([self._out], [], [], seconds)
        return self.received

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = signal.Signals(number)
        for each in _SIGNALS:
            if signal.getsignal(each) == self._note:
                signal.signal(each, signal.SIG_DFL)
        os.write(self._in, b"!")
