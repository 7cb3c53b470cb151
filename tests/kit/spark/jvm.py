"""Spark's own classes without a Spark: a JVM that has them on its class path, reached through py4j."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# py4j has no types.
_py4j: Any = import_module("py4j.java_gateway")
_protocol: Any = import_module("py4j.protocol")
JVM_ERROR: type[Exception] = _protocol.Py4JJavaError

# What Spark opens for itself when it starts a driver on Java 17.
_OPENS = (
    "java.lang",
    "java.lang.invoke",
    "java.nio",
    "java.util",
    "sun.nio.ch",
    "sun.security.action",
    "sun.util.calendar",
)


@contextmanager
def spark_classes(java_home: Path) -> Generator[Any, None, None]:
    """The view of a JVM; it is stopped at the end."""
    jars = _jars()
    port, process = _py4j.launch_gateway(
        classpath=str(jars / "*"),
        jarpath=str(next(jars.glob("py4j*.jar"))),
        java_path=str(java_home / "bin" / "java"),
        javaopts=["-Xmx512m", *[f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENS]],
        die_on_exit=True,
        return_proc=True,
    )
    gateway = _py4j.JavaGateway(gateway_parameters=_py4j.GatewayParameters(port=port))
    # A session of pyspark, had in this process before, leaves in py4j its own way of telling errors.
    reported_by, _py4j.get_return_value = _py4j.get_return_value, _protocol.get_return_value
    try:
        yield gateway
    finally:
        _py4j.get_return_value = reported_by
        gateway.shutdown()
        process.stdin.close()
        process.wait(timeout=60)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _jars() -> Path:
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "jars"
