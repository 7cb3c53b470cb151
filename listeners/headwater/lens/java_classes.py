"""The Java side of the lens, compiled in the driver's JVM by Janino, as Spark brings it. No file is written."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any, Final

from headwater.lens.model import LensError

_PACKAGE: Final = "headwater.lens"
_LOADER_PROPERTY: Final = "headwater.lens.loader"
_SEQUENCE: Final = re.compile(rb"\bScalaSeq\b")
"""In the sources: the type that Scala calls Seq, which is another one in Scala 2.12 and 2.13."""


class LensClasses:
    """The compiled classes. They are compiled once for each JVM, in some hundred milliseconds."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self._jvm = gateway.jvm
        self._loader = self._shared_loader()

    def new(self, name: str, *arguments: Any) -> Any:
        """Return an object of a class that has one constructor."""
        constructor = self.load(name).getConstructors()[0]
        return constructor.newInstance(self.array("java.lang.Object", arguments))

    def install(self, session_state: Any, lens_state: Any) -> Any:
        """Put a lens's state into a session; what comes back takes it out."""
        hooks = self.load("LensHooks")
        kinds = self.array("java.lang.Class", (self._class("java.lang.Object"), self.load("LensState")))
        given = self.array("java.lang.Object", (session_state, lens_state))
        try:
            return hooks.getMethod("install", kinds).invoke(None, given)
        except Exception as e:  # py4j's errors have no common root that can be imported without a JVM
            raise LensError(f"this Spark can't have a lens: {_root_message(e)}") from e

    def load(self, name: str) -> Any:
        """Return a class of ours, as Java's Class object."""
        try:
            return self._loader.loadClass(f"{_PACKAGE}.{name}")
        except Exception as e:
            raise LensError(f"{name} can't be compiled for this Spark: {_root_message(e)}") from e

    def _class(self, name: str) -> Any:
        return self._jvm.java.lang.Class.forName(name)

    def array(self, kind: str, items: tuple[Any, ...]) -> Any:
        """Return a Java array of this class."""
        made = self._jvm.java.lang.reflect.Array.newInstance(self._class(kind), len(items))
        for place, item in enumerate(items):
            made[place] = item
        return made

    def _shared_loader(self) -> Any:
        properties = self._jvm.java.lang.System.getProperties()
        known = properties.get(_LOADER_PROPERTY)
        if known is not None:
            return known
        parent = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        scala = str(self._jvm.scala.util.Properties.versionNumberString())
        sequence = b"scala.collection.Seq" if scala.startswith("2.12") else b"scala.collection.immutable.Seq"
        content = self._jvm.java.util.HashMap()
        for name, text in read_sources().items():
            content.put(f"headwater/lens/{name}", _SEQUENCE.sub(sequence, text))
        finder = self._jvm.org.codehaus.commons.compiler.util.resource.MapResourceFinder(content)
        loader = self._jvm.org.codehaus.janino.JavaSourceClassLoader(parent, finder, "UTF-8")
        loader.setDebuggingInfo(True, True, False)
        properties.put(_LOADER_PROPERTY, loader)
        return loader


def read_sources() -> dict[str, bytes]:
    """Return the Java sources by file name."""
    found = (files("headwater.lens") / "java").iterdir()
    return {each.name: each.read_bytes() for each in found if each.name.endswith(".java")}


def _root_message(error: Exception) -> str:
    cause = getattr(error, "java_exception", None)
    if cause is None:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    words = str(cause.toString())
    for _ in range(20):
        cause = cause.getCause()
        if cause is None:
            break
        words = str(cause.toString())
    return words[:600]
