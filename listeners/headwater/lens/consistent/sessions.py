"""Gives each session of an application the rule by which it can read consistently."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from headwater import plugins
from headwater.lens.consistent.answering import Answering
from headwater.lens.consistent.port import GROUP, VersionFinder, VersionFinderFactory
from headwater.lens.java_classes import LensClasses

_LOG = logging.getLogger(__name__)
KEY: Final = "spark.headwater.read.consistent"
_FINDER: Final = "lineage"


def has_settings(configuration: Mapping[str, str]) -> bool:
    """Return whether an application's configuration has any setting of consistent reads. Without one nothing is
    installed, and no session can read consistently."""
    return any(key == KEY or key.startswith(f"{KEY}.") for key in configuration)


def begin(spark_context: Any, configuration: Mapping[str, str]) -> ConsistentReads:
    """Have each session of this context, those that are made later too, read consistently where it says so."""
    reads = ConsistentReads(spark_context, lambda: _make_finder(configuration))
    reads.start()
    return reads


def _make_finder(configuration: Mapping[str, str]) -> VersionFinder:
    factory: VersionFinderFactory = plugins.create(GROUP, _FINDER)
    return factory.create(configuration)


class ConsistentReads:
    """Consistent reads in one SparkContext, from `start` to `close`."""

    def __init__(self, spark_context: Any, make_finder: Callable[[], VersionFinder]) -> None:
        self._java = LensClasses(spark_context._gateway).new("ConsistentReads", spark_context._jsc.sc())
        self._answering = Answering(self._java, make_finder)

    def start(self) -> None:
        self._answering.start()
        _installed.watch(self)

    def close(self) -> None:
        """Sessions read as if this had never been. Their rule stays, and does nothing."""
        _installed.forget(self)
        self._answering.close()
        try:
            self._java.close()
        except Exception as e:  # noqa: BLE001 - the JVM may be gone, in whatever way py4j says that
            _LOG.debug("consistent reads can't be closed: %s", e)

    def install(self, java_session: Any) -> None:
        """Put the rule into a session, and into those that are made from it. Never raises."""
        try:
            self._java.install(java_session)
        except Exception as e:  # noqa: BLE001 - the job goes on
            _LOG.warning("this session can't read consistently, and %s has no effect in it: %s", KEY, e)


class _InstalledReads:
    """Which consistent reads sessions get that Python makes: those of the context that came last."""

    def __init__(self) -> None:
        self._current: ConsistentReads | None = None
        self._is_watching = False

    def watch(self, reads: ConsistentReads) -> None:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - the program's own pyspark, which is loaded by now

        self._current = reads
        session_class: Any = SparkSession
        if not self._is_watching:
            self._patch(session_class)
        existing = session_class._instantiatedSession
        if existing is not None and existing.sparkContext._jsc is not None:
            reads.install(existing._jsparkSession)

    def forget(self, reads: ConsistentReads) -> None:
        if self._current is reads:
            self._current = None

    def _patch(self, session_class: Any) -> None:
        original: Callable[..., None] = session_class.__init__

        def begin(session: Any, *args: Any, **kwargs: Any) -> None:
            original(session, *args, **kwargs)
            if self._current is not None:
                self._current.install(session._jsparkSession)

        begin.__wrapped__ = original  # type: ignore[attr-defined]
        session_class.__init__ = begin
        self._is_watching = True


_installed: Final = _InstalledReads()
