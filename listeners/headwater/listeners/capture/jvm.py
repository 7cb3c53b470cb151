"""The Java side: sources in `java/`, compiled by the compiler that Spark itself brings (Janino), in the driver's JVM.

No file is written, no jar is added to anybody's class path. A JVM has one loader for all of it, whichever contexts come
and go, because some registries of the formats keep what was registered for as long as the JVM lives.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from headwater.errors import HeadwaterError

_LOG = logging.getLogger(__name__)
_HERE: Final = "headwater.listeners.capture"
_PACKAGE: Final = "headwater.capture"
_KEPT: Final = "headwater.capture.loader"
_WITHOUT: Final = "headwater.capture.without"
PROBES: Final = {
    "Session": "org.apache.spark.sql.SparkSession",
    "Catalog": "org.apache.spark.sql.SparkSession",
    "Iceberg": "org.apache.iceberg.spark.source.SparkTable",
    "Delta": "org.apache.spark.sql.delta.DeltaLog",
    "Paimon": "org.apache.paimon.spark.SparkTable",
    "Hudi": "org.apache.hudi.HoodieFileIndex",
    "Kafka": "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    "Jdbc": "org.apache.spark.sql.execution.datasources.jdbc.JDBCRelation",
}
"""What may be there, and a class that tells whether it is."""


class JavaError(HeadwaterError):
    """Something on the Java side can't be had."""


@dataclass(frozen=True)
class Degraded:
    """A part of the Java side that should be there and isn't."""

    part: str
    why: str


class Java:
    """The compiled classes, for one context. Slow the first time in a JVM: some hundred milliseconds."""

    def __init__(self, context: Any) -> None:
        self._gateway = context._gateway
        self._jvm = context._jvm
        self._parent = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        self._sources = {
            name: text for name, text in sources().items() if name.removesuffix(".java") not in self.left_out()
        }
        self._loader = self._kept_loader()

    def present(self) -> list[str]:
        """Of `PROBES`, what this driver has on its class path."""
        return [name for name, probe in PROBES.items() if self._has(probe)]

    def load(self, name: str) -> Any:
        """A class of ours, as Java's Class object."""
        try:
            return self._loader.loadClass(f"{_PACKAGE}.{name}")
        except Exception as e:  # py4j's errors have no common root that can be imported without a JVM
            raise JavaError(f"{name} can't be compiled here: {brief(e)}") from e

    def has_source(self, name: str) -> bool:
        return f"{name}.java" in self._sources

    def leave_out(self, name: str) -> None:
        """A class that can't be compiled here. The compiler would try again whenever it is asked for another class, so
        there has to be a new loader, before anything that the old one loaded is in use."""
        properties = self._jvm.java.lang.System.getProperties()
        properties.put(_WITHOUT, ",".join((*self.left_out(), name)))
        properties.remove(_KEPT)
        del self._sources[f"{name}.java"]
        self._loader = self._kept_loader()

    def left_out(self) -> list[str]:
        """Classes that couldn't be compiled in this JVM, for this context or an earlier one."""
        names = self._jvm.java.lang.System.getProperties().get(_WITHOUT)
        return names.split(",") if names else []

    def new(self, name: str, *arguments: Any) -> Any:
        """An object of a class of ours that has one constructor; integers must fit its parameters' types."""
        constructor = self.load(name).getConstructors()[0]
        given = self._gateway.new_array(self._jvm.java.lang.Object, len(arguments))
        for place, kind in enumerate(constructor.getParameterTypes()):
            given[place] = self._fitting(arguments[place], kind.getName())
        try:
            return constructor.newInstance(given)
        except Exception as e:
            raise JavaError(f"{name} can't be made: {brief(e)}") from e

    def call(self, name: str, method: str) -> Any:
        """A static method of a class of ours, without arguments."""
        found = self.load(name)
        nothing = self._gateway.new_array(self._jvm.java.lang.Class, 0)
        try:
            return found.getMethod(method, nothing).invoke(None, self._gateway.new_array(self._jvm.java.lang.Object, 0))
        except Exception as e:
            raise JavaError(f"{name}.{method}: {brief(e)}") from e

    def call_with_context(self, name: str, method: str, context: Any) -> None:
        """A static method of a class of ours that takes the JVM's SparkContext."""
        found = self.load(name)
        kinds = self._gateway.new_array(self._jvm.java.lang.Class, 1)
        kinds[0] = self._parent.loadClass("org.apache.spark.SparkContext")
        given = self._gateway.new_array(self._jvm.java.lang.Object, 1)
        given[0] = context
        try:
            found.getMethod(method, kinds).invoke(None, given)
        except Exception as e:
            raise JavaError(f"{name}.{method}: {brief(e)}") from e

    def array(self, name: str, items: list[Any]) -> Any:
        """An array of a class of ours."""
        made = self._jvm.java.lang.reflect.Array.newInstance(self.load(name), len(items))
        for place, item in enumerate(items):
            made[place] = item
        return made

    def list(self, items: list[str]) -> Any:
        made = self._jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
        return made

    def _has(self, class_name: str) -> bool:
        try:
            self._parent.loadClass(class_name)
        except Exception:  # noqa: BLE001 - whatever a class loader says: it isn't there for us
            return False
        return True

    def _fitting(self, argument: Any, kind: str) -> Any:
        return self._jvm.java.lang.Long.valueOf(str(argument)) if kind == "long" else argument

    def _kept_loader(self) -> Any:
        properties = self._jvm.java.lang.System.getProperties()
        kept = properties.get(_KEPT)
        if kept is not None:
            return kept
        content = self._jvm.java.util.HashMap()
        for name, text in self._sources.items():
            content.put(f"headwater/capture/{name}", text)
        finder = self._jvm.org.codehaus.commons.compiler.util.resource.MapResourceFinder(content)
        loader = self._jvm.org.codehaus.janino.JavaSourceClassLoader(self._parent, finder, "UTF-8")
        properties.put(_KEPT, loader)
        return loader


def sources() -> dict[str, bytes]:
    """The Java sources by file name."""
    folder = files(_HERE).joinpath("java")
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.name.endswith(".java")}


def brief(error: Exception) -> str:
    """What a Java exception says at its root."""
    cause = getattr(error, "java_exception", None)
    if cause is None:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    words = [str(cause.toString())]
    while (cause := cause.getCause()) is not None and len(words) < 20:
        words.append(str(cause.toString()))
    return words[-1][:600]
