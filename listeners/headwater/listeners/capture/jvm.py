"""The Java side: sources in `java/` and beside each format, in the driver's JVM."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headwater.jvm.bundled import SourceGroup
from headwater.jvm.loader import ClassPath, JavaError, SharedLoader, root_message
from headwater.listeners.capture.formats import CORE, java_parts
from headwater.listeners.capture.formats.plugin import JavaPart

__all__ = ["DegradedPart", "JavaClasses", "JavaError", "Py4jLogFilter", "read_sources", "root_message", "source_groups"]
_PACKAGE: Final = "headwater.capture"
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


class JavaClasses(SharedLoader):
    """The classes, for one context: all that every format needs, and those of the formats that this driver has."""

    def __init__(self, spark_context: Any) -> None:
        gateway = spark_context._gateway
        class_path = ClassPath(gateway.jvm)
        self._present = [part for part in java_parts() if part in CORE or class_path.find(part.probe) is not None]
        super().__init__(gateway, _PACKAGE, source_groups(self._present), class_path, rename_moved)

    def present(self) -> list[JavaPart]:
        """The parts whose library this driver has on its class path."""
        return self._present

    def has_source(self, name: str) -> bool:
        return f"{name}.java" in self.sources


def source_groups(parts: list[JavaPart]) -> list[SourceGroup]:
    """What is kept in one archive each: what all formats stand on, and what each of these formats brings."""
    texts = read_sources()
    others = {name for part in java_parts() if part not in CORE for name in part.sources()}
    shared = {name: text for name, text in texts.items() if name not in others}
    groups = [SourceGroup("core", shared, CORE[0].probe, CORE[0].reflection())]
    for part in parts:
        if part not in CORE and (names := part.sources()):
            own = {name: texts[name] for name in names}
            groups.append(SourceGroup(min(own), own, part.probe, part.reflection()))
    return groups


def read_sources() -> dict[str, bytes]:
    """The Java sources by file name: what all formats share, and what each format brings."""
    return {name: text for part in java_parts() for name, text in part.sources().items()}


def rename_moved(class_path: ClassPath) -> Callable[[bytes], bytes]:
    """What gives a source the names that this Spark has for the classes that newer ones moved."""
    moved = {
        old: new for old, new in MOVED.items() if class_path.find(old) is None and class_path.find(new) is not None
    }
    return lambda source: rename_classes(source, moved)


def rename_classes(source: bytes, names: Mapping[str, str]) -> bytes:
    """Return a Java source in which other names stand for these full names of classes."""
    for old, new in names.items():
        source = re.sub(rb"\b%s\b" % re.escape(old.encode()), new.encode(), source)
    return source


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
