"""Hadoop's file systems, reached through the JVM of a driver, or through one that is started for it.

Files are copied by the JVM itself: no byte of them passes through the gateway. Credentials are those of the driver.
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
from headwater.listeners.bus.remote_files import Connect, RemoteFile

_MILLIS_PER_SECOND: Final = 1000.0
_COMMAND_LINE_KEYS: Final = ("spark.jars", "spark.driver.extraClassPath")
"""What only a JVM that isn't there yet can be given; the rest is passed to it where no list of processes shows it."""


class HadoopFiles:
    """Implements `RemoteFiles` with an `org.apache.hadoop.fs.FileSystem` of its own.

    Others could close a shared one.
    """

    def __init__(self, jvm: Any, configuration: Any, uri: str) -> None:
        self._jvm = jvm
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        root = self._path(uri)
        self._files = jvm.org.apache.hadoop.fs.FileSystem.newInstance(root.toUri(), configuration)
        self._root = self._files.makeQualified(root)

    def names(self, path: str) -> list[RemoteFile]:
        try:
            found = self._files.listStatus(self._at(path))
        except Exception as e:
            if _was_caused_by(e, "FileNotFoundException"):
                return []
            raise
        return [_remote_file(each) for each in found]

    def put(self, source: Path, path: str) -> None:
        self._files.copyFromLocalFile(False, True, self._local(source), self._at(path))

    def get(self, path: str, target: Path) -> None:
        self._files.copyToLocalFile(False, self._at(path), self._local(target), True)

    def write(self, path: str, data: bytes, *, replace: bool) -> bool:
        try:
            stream = self._files.create(self._at(path), replace)
        except Exception as e:
            if not replace and _was_caused_by(e, "FileAlreadyExistsException"):
                return False
            raise
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()
        return True

    def read(self, path: str) -> bytes | None:
        try:
            stream = self._files.open(self._at(path))
        except Exception as e:
            if _was_caused_by(e, "FileNotFoundException"):
                return None
            raise
        try:
            scanner = self._jvm.java.util.Scanner(stream, "UTF-8").useDelimiter("\\A")
            return str(scanner.next()).encode() if scanner.hasNext() else b""
        finally:
            stream.close()

    def remove(self, path: str) -> None:
        self._files.delete(self._at(path), True)

    def _at(self, path: str) -> Any:
        return self._path(self._root, path) if path else self._root

    def _local(self, path: Path) -> Any:
        return self._path(self._jvm.java.io.File(str(path.absolute())).toURI())


def hadoop_of_context(context: Any) -> Connect:
    """By the JVM of a SparkContext. What is needed of it is taken now: once it has stopped it tells nothing more."""
    jvm, configuration = context._jvm, context._jsc.hadoopConfiguration()
    return lambda uri: HadoopFiles(jvm, configuration, uri)


@contextmanager
def hadoop_with_own_jvm(conf: Mapping[str, str]) -> Generator[Connect, None, None]:
    """By a JVM that is started when it is needed, with the properties of the drivers, and stopped at the end."""
    gateways: list[Any] = []

    def connect(uri: str) -> HadoopFiles:
        gateways.append(_launch_jvm(conf))
        jvm = gateways[-1].jvm
        spark_conf = jvm.org.apache.spark.SparkConf()
        for key, value in conf.items():
            spark_conf.set(key, value)
        configuration = jvm.org.apache.spark.deploy.SparkHadoopUtil.get().newConfiguration(spark_conf)
        return HadoopFiles(jvm, configuration, uri)

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


def _remote_file(status: Any) -> RemoteFile:
    return RemoteFile(
        str(status.getPath().getName()),
        int(status.getLen()),
        int(status.getModificationTime()) / _MILLIS_PER_SECOND,
        bool(status.isDirectory()),
    )


def _was_caused_by(error: Exception, kind: str) -> bool:
    """Whether Java threw that; whatever is above py4j may have put it into another error."""
    java: Any = getattr(error, "java_exception", None)
    return java is not None and str(java.getClass().getName()).endswith(kind)
