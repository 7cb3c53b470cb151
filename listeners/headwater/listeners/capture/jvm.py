"""The Java side: sources in `java/` and beside each format, compiled in the driver's JVM by Janino, as Spark brings it.

No jar is added to anybody's class path; class files are kept for the drivers to come (`class_cache`). A JVM has one
loader for all of it, whichever contexts come and go, because some registries of the formats keep what was registered
for as long as the JVM lives.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater.errors import HeadwaterError
from headwater.events.redaction import READ
from headwater.listeners.capture.class_cache import ClassCache, class_directory, key_of
from headwater.listeners.capture.formats import java_parts
from headwater.listeners.capture.formats.plugin import JavaPart

_LOG = logging.getLogger(__name__)
_PACKAGE: Final = "headwater.capture"
_LOADER_PROPERTY: Final = "headwater.capture.loader"
_LEFT_OUT_PROPERTY: Final = "headwater.capture.without"
_STREAMING: Final = "org.apache.spark.sql.execution.streaming"
MOVED: Final = {
    # Spark 4.1 gave the classes of streaming packages of their own.
    f"{_STREAMING}.{name}": f"{_STREAMING}.{package}.{name}"
    for package, names in {
        "checkpointing": ("OffsetSeq",),
        "runtime": ("IncrementalExecution", "StreamExecution", "StreamingRelation"),
        "sinks": ("FileStreamSink", "FileStreamSinkLog"),
    }.items()
    for name in names
}
"""Classes that the sources name, and where a newer Spark has them: there, the compiler is given the newer name."""


class JavaError(HeadwaterError):
    """Something on the Java side can't be had."""


@dataclass(frozen=True)
class DegradedPart:
    """A part of the Java side that isn't there, or is without something that it reads by reflection."""

    part: str
    why: str
    is_there: bool = False

    def __str__(self) -> str:
        if self.is_there:
            return f"{self.part} doesn't find all that it reads: {self.why}"
        return f"{self.part} isn't there, so some snapshots may not be exact: {self.why}"


class JavaClasses:
    """The classes, for one context. Compiling them costs a driver some seconds of CPU, loading class files less."""

    def __init__(self, spark_context: Any) -> None:
        self._gateway = spark_context._gateway
        self._jvm = spark_context._jvm
        self._parent = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        self._cache: ClassCache | None = None
        self._compiled: Any = None
        """In the JVM: class files by their paths."""
        self._kept: set[str] = set()
        """Those of them that are on disk."""
        moved = {old: new for old, new in MOVED.items() if not self._has(old) and self._has(new)}
        left_out = {f"{name}.java" for name in self.left_out()}
        self._sources = {
            name: rename_classes(text, moved) for name, text in read_sources().items() if name not in left_out
        }
        self._present = [part for part in java_parts() if self._has(part.probe)]
        self._loader = self._shared_loader()

    def present(self) -> list[JavaPart]:
        """The parts whose library this driver has on its class path."""
        return self._present

    def sources(self) -> Mapping[str, bytes]:
        """The Java sources by file name, as this driver compiles them."""
        return self._sources

    def load(self, name: str) -> Any:
        """A class of ours, as Java's Class object."""
        try:
            return self._loader.loadClass(f"{_PACKAGE}.{name}")
        except Exception as e:  # py4j's errors have no common root that can be imported without a JVM
            raise JavaError(f"{name} can't be compiled here: {root_message(e)}") from e

    def has_source(self, name: str) -> bool:
        return f"{name}.java" in self._sources

    def leave_out(self, name: str) -> None:
        """A class that can't be compiled here. The compiler would try again whenever it is asked for another class, so
        there has to be a new loader, before anything that the old one loaded is in use."""
        properties = self._jvm.java.lang.System.getProperties()
        properties.put(_LEFT_OUT_PROPERTY, ",".join((*self.left_out(), name)))
        properties.remove(_LOADER_PROPERTY)
        del self._sources[f"{name}.java"]
        self._loader = self._shared_loader()

    def left_out(self) -> list[str]:
        """Classes that couldn't be compiled in this JVM, for this context or an earlier one."""
        names = self._jvm.java.lang.System.getProperties().get(_LEFT_OUT_PROPERTY)
        return names.split(",") if names else []

    def new(self, name: str, *arguments: Any) -> Any:
        """An object of a class of ours that has one constructor; integers must fit its parameters' types."""
        constructor = self.load(name).getConstructors()[0]
        given = self._gateway.new_array(self._jvm.java.lang.Object, len(arguments))
        for place, kind in enumerate(constructor.getParameterTypes()):
            given[place] = self._convert_argument(arguments[place], kind.getName())
        try:
            return constructor.newInstance(given)
        except Exception as e:
            raise JavaError(f"{name} can't be made: {root_message(e)}") from e

    def call(self, name: str, method: str) -> Any:
        """A static method of a class of ours, without arguments."""
        found = self.load(name)
        nothing = self._gateway.new_array(self._jvm.java.lang.Class, 0)
        try:
            return found.getMethod(method, nothing).invoke(None, self._gateway.new_array(self._jvm.java.lang.Object, 0))
        except Exception as e:
            raise JavaError(f"{name}.{method}: {root_message(e)}") from e

    def call_with_context(self, name: str, method: str, spark_context: Any) -> None:
        """A static method of a class of ours that takes the JVM's SparkContext."""
        found = self.load(name)
        kinds = self._gateway.new_array(self._jvm.java.lang.Class, 1)
        kinds[0] = self._parent.loadClass("org.apache.spark.SparkContext")
        given = self._gateway.new_array(self._jvm.java.lang.Object, 1)
        given[0] = spark_context
        try:
            found.getMethod(method, kinds).invoke(None, given)
        except Exception as e:
            raise JavaError(f"{name}.{method}: {root_message(e)}") from e

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

    def _convert_argument(self, argument: Any, kind: str) -> Any:
        return self._jvm.java.lang.Long.valueOf(str(argument)) if kind == "long" else argument

    def _shared_loader(self) -> Any:
        """The loader of this JVM, made by the first context that needs one."""
        properties = self._jvm.java.lang.System.getProperties()
        kept = properties.get(_LOADER_PROPERTY)
        if kept is not None:
            return kept
        content = self._jvm.java.util.HashMap()
        for name, text in self._sources.items():
            content.put(f"headwater/capture/{name}", text)
        finder = self._jvm.org.codehaus.commons.compiler.util.resource.MapResourceFinder(content)
        loader = self._loader_with_cache(finder)
        loader.setDebuggingInfo(True, True, False)  # source and lines, with which what is caught is reported
        properties.put(_LOADER_PROPERTY, loader)
        return loader

    def _loader_with_cache(self, finder: Any) -> Any:
        """A loader that takes class files of an earlier driver's, and keeps what it has to compile in memory."""
        janino, resources = self._jvm.org.codehaus.janino, self._jvm.org.codehaus.commons.compiler.util.resource
        try:
            self._cache = ClassCache(class_directory(), self._cache_key())
            self._compiled = self._jvm.java.util.concurrent.ConcurrentHashMap()
            for name, content in (self._cache.find() or {}).items():
                self._compiled.put(name, content)
                self._kept.add(name)
            kept, made = resources.MapResourceFinder(self._compiled), resources.MapResourceCreator(self._compiled)
            kept.setLastModified(1)  # class files are newer than the sources, which have no time
            _LOG.debug("Java classes: %d class files of an earlier driver", len(self._kept))
            return janino.CachingJavaSourceClassLoader(self._parent, finder, "UTF-8", kept, made)
        except Exception as e:  # noqa: BLE001 - whatever this Janino or class path is: it can compile
            _LOG.debug("class files can't be kept: %s", e)
            self._cache = self._compiled = None
            return janino.JavaSourceClassLoader(self._parent, finder, "UTF-8")

    def _cache_key(self) -> str:
        system = self._jvm.java.lang.System
        class_path = system.getProperty("java.class.path").split(os.pathsep)
        return key_of(self._sources, system.getProperty("java.vm.version"), (*class_path, *self._added_jars()))

    def _added_jars(self) -> tuple[str, ...]:
        """What Spark adds to the class path of a driver that runs: `spark.jars` and packages."""
        try:
            urls = str(self._jvm.java.util.Arrays.toString(self._parent.getURLs()))
        except Exception:  # noqa: BLE001 - a loader without any says so in py4j's words
            return ()
        return tuple(urls[1:-1].split(", "))

    def compiled(self) -> tuple[str, ...]:
        """The class files that this context's loader had to compile, and that aren't kept yet."""
        names = () if self._compiled is None else self._compiled.keySet().toArray()
        return tuple(str(name) for name in names if str(name) not in self._kept)

    def keep_compiled(self) -> None:
        """Keep what was compiled since the last call for drivers to come."""
        if self._cache is None:
            return
        if new := self.compiled():
            self._cache.add({name: bytes(self._compiled.get(name)) for name in new})
            self._kept.update(new)


def read_sources() -> dict[str, bytes]:
    """The Java sources by file name: what all formats share, and what each format brings."""
    return {name: text for part in java_parts() for name, text in part.sources().items()}


def rename_classes(source: bytes, names: Mapping[str, str]) -> bytes:
    """Return a Java source in which other names stand for these full names of classes."""
    for old, new in names.items():
        source = re.sub(rb"\b%s\b" % re.escape(old.encode()), new.encode(), source)
    return source


def root_message(error: Exception) -> str:
    """What a Java exception says at its root."""
    cause = getattr(error, "java_exception", None)
    if cause is None:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    words = [str(cause.toString())]
    while (cause := cause.getCause()) is not None and len(words) < 20:
        words.append(str(cause.toString()))
    return words[-1][:READ]


_OURS: Final = "headwater"
"""What the names of all our threads begin with."""
_FINALIZER: Final = "FinalizerWorker"
"""py4j's thread that lets go of Java's objects, ours among them."""
_WORDS: Final = "Exception while sending command"


class Py4jLogFilter(logging.Filter):
    """On the root logger from `begin` to `end`, or for good where the JVM is gone."""

    def begin(self) -> None:
        logging.getLogger().addFilter(self)

    def end(self) -> None:
        logging.getLogger().removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        thread = threading.current_thread()
        is_ours = thread.name.startswith(_OURS) or type(thread).__name__ == _FINALIZER
        return not (is_ours and str(record.msg).startswith(_WORDS))
