"""The Java side of the lens, in the driver's JVM."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any, Final

from headwater.jvm.bundled import SourceGroup
from headwater.jvm.loader import ClassPath, JavaError, SharedLoader, java_class, root_message
from headwater.lens.model import LensError

_PACKAGE: Final = "headwater.lens"
_TOPICS: Final = "TopicPins.java"
"""The source that needs Kafka's client."""
_KAFKA: Final = "org.apache.kafka.clients.admin.Admin"
_SEQUENCE: Final = re.compile(rb"\bScalaSeq\b")
"""In the sources: the type that Scala calls Seq, which is another one in Scala 2.12 and 2.13."""


class LensClasses:
    """The classes, which a JVM loads when a lens or consistent reads are first asked for."""

    def __init__(self, gateway: Any) -> None:
        self._java = make_loader(gateway)
        self._class = java_class(gateway, "java.lang.Class")

    def new(self, name: str, *arguments: Any) -> Any:
        """Return an object of a class that has one constructor."""
        self.load(name)
        made = self._java.new(name, *arguments)
        self._java.keep()
        return made

    def install(self, session_state: Any, lens_state: Any) -> Any:
        """Put a lens's state into a session; what comes back takes it out."""
        kinds = [self._class.forName("java.lang.Object"), self.load("LensState")]
        try:
            return self._java.call("LensHooks", "install", kinds, [session_state, lens_state])
        except JavaError as e:
            raise LensError(f"this Spark can't have a lens: {root_message(e.__cause__)}") from e

    def load(self, name: str) -> Any:
        """Return a class of ours, as Java's Class object."""
        try:
            return self._java.load(name)
        except JavaError as e:
            raise LensError(f"{name} can't be compiled for this Spark: {root_message(e.__cause__)}") from e

    def objects(self, *items: Any) -> Any:
        """Return a Java array of these."""
        return self._java.objects(items)


def name_sequences(class_path: ClassPath) -> Callable[[bytes], bytes]:
    """What gives a source the name of the type that Scala calls Seq."""
    is_old = class_path.find("scala.collection.immutable.ArraySeq") is None  # as Scala 2.12
    sequence = b"scala.collection.Seq" if is_old else b"scala.collection.immutable.Seq"
    return lambda source: _SEQUENCE.sub(sequence, source)


def make_loader(gateway: Any) -> SharedLoader:
    """The loader of the lens in a JVM; with what pins topics, where Kafka's client is there."""
    class_path, sources = ClassPath(gateway), read_sources()
    topics = {_TOPICS: sources.pop(_TOPICS)}
    groups = [SourceGroup("lens", sources, "org.apache.spark.sql.SparkSession")]
    if class_path.find(_KAFKA) is not None:
        groups.append(SourceGroup("lens of topics", topics, _KAFKA))
    return SharedLoader(gateway, _PACKAGE, groups, class_path, name_sequences)


def read_sources() -> dict[str, bytes]:
    """Return the Java sources by file name."""
    found = (files("headwater.lens") / "java").iterdir()
    return {entry.name: entry.read_bytes() for entry in found if entry.name.endswith(".java")}
