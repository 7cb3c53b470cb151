"""Hadoop's file systems, reached through the JVM of a driver, or through one that is started for it.

Credentials are those of the driver.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from headwater.errors import ConfigurationError
from headwater.listeners.bus.options import Connect

_COMMAND_LINE_KEYS: Final = ("spark.jars", "spark.driver.extraClassPath")
"""What only a JVM that isn't there yet can be given; the rest is passed to it where no list of processes shows it."""


class HadoopDirectory:
    """Implements `HandoverDirectory` with an `org.apache.hadoop.fs.FileSystem` of its own: others could close a shared
    one. A file is copied from there by the JVM; what is written there goes through the gateway, some 20 MB a second,
    because the disk of a driver that has much to hand over may be full."""

    def __init__(self, jvm: Any, configuration: Any, uri: str) -> None:
        self._jvm = jvm
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        root = self._path(uri)
        self._files = jvm.org.apache.hadoop.fs.FileSystem.newInstance(root.toUri(), configuration)
        self._root = self._files.makeQualified(root)

    def sizes(self) -> dict[str, int]:
        try:
            found = self._files.listStatus(self._root)
        except Exception as e:
            if _was_caused_by(e, "FileNotFoundException"):
                return {}
            raise
        return {str(file.getPath().getName()): int(file.getLen()) for file in found if file.isFile()}

    def create(self, name: str) -> Any:
        return self._files.create(self._at(name), False)

    def rename(self, name: str, to: str) -> None:
        if not self._files.rename(self._at(name), self._at(to)):
            raise FileExistsError(f"{name} can't be renamed to {to}")

    def read(self, name: str, count: int) -> bytes:
        status = self._files.getFileStatus(self._at(name))
        stream = self._files.open(self._at(name))
        try:
            size = min(count, int(status.getLen()))
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream, size))
        finally:
            stream.close()

    def fetch(self, name: str, size: int, target: Path) -> None:
        local = self._path(self._jvm.java.io.File(str(target.absolute())).toURI())
        self._files.copyToLocalFile(False, self._at(name), local, True)

    def remove(self, name: str) -> None:
        self._files.delete(self._at(name), False)

    def _at(self, name: str) -> Any:
        return self._path(self._root, self._path(None, None, name))


def hadoop_of_context(context: Any) -> Connect:
    """By the JVM of a SparkContext. What is needed of it is taken now: once it has stopped it tells nothing more."""
    jvm, configuration = context._jvm, context._jsc.hadoopConfiguration()
    return lambda uri: HadoopDirectory(jvm, configuration, uri)


@contextmanager
def hadoop_with_own_jvm(conf: Mapping[str, str]) -> Generator[Connect, None, None]:
    """By a JVM that is started when it is needed, with the properties of the drivers, and stopped at the end."""
    gateways: list[Any] = []

    def connect(uri: str) -> HadoopDirectory:
        gateways.append(_launch_jvm(conf))
        jvm = gateways[-1].jvm
        spark_conf = jvm.org.apache.spark.SparkConf()
        for key, value in conf.items():
            spark_conf.set(key, value)
        configuration = jvm.org.apache.spark.deploy.SparkHadoopUtil.get().newConfiguration(spark_conf)
        return HadoopDirectory(jvm, configuration, uri)

    try:
        yield connect
    finally:
        for gateway in gateways:
            _stop_jvm(gateway)


def _launch_jvm(conf: Mapping[str, str]) -> Any:
    try:
        launch: Callable[..., Any] = import_module("pyspark.java_gateway").launch_gateway
        spark_conf: Any = import_module("pyspark").SparkConf(loadDefaults=False)
    except ImportError as e:
        raise ConfigurationError(
            "spark.headwater.spool.handover is a path of Hadoop's, for which pyspark is needed: "
            "run this where the drivers run, or install pyspark and Java"
        ) from e
    for key, value in conf.items():
        if key.startswith(_COMMAND_LINE_KEYS):
            spark_conf.set(key, value)
    try:
        return launch(conf=spark_conf, popen_kwargs={"stdout": subprocess.DEVNULL})
    except Exception as e:
        raise ConfigurationError(f"no Java could be started for spark.headwater.spool.handover: {e}") from e


def _stop_jvm(gateway: Any) -> None:
    with contextlib.suppress(Exception):
        gateway.shutdown()
    process = gateway.proc
    process.stdin.close()  # which is what it ends with
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()


def _was_caused_by(error: Exception, kind: str) -> bool:
    """Whether Java threw that; whatever is above py4j may have put it into another error."""
    java: Any = getattr(error, "java_exception", None)
    return java is not None and str(java.getClass().getName()).endswith(kind)
