"""Consistent reads: SQL that names no snapshot reads versions that belong together.

Each session of an application gets a rule by which it can read consistently; the Java side is in `headwater.lens.java`.
The same rule reads `VERSION AS OF 'branch.tag'`, which needs no answer of ours.
Who finds versions is a plug-in, an entry point of `headwater.version_finders`, loaded when an application asks for it.

The thread of the JVM that analyses a statement puts its question into a queue, and waits for so long at most. Threads
of ours come for the questions, as clients of the JVM, and nothing calls back into Python. So it doesn't matter what the
program's own threads do, or whether a statement comes from Python at all.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from headwater import plugins
from headwater.errors import PluginError
from headwater.lens.java_classes import LensClasses

__all__ = [
    "BRANCH_VERSIONS",
    "GROUP",
    "KEY",
    "PREFIX",
    "ConsistentReads",
    "FoundVersions",
    "PinnedVersion",
    "VersionFinder",
    "VersionFinderFactory",
    "begin",
    "has_settings",
]


GROUP: Final = "headwater.version_finders"
"""The group of entry points that names factories of version finders."""


@dataclass(frozen=True)
class PinnedVersion:
    """A table, and the version at which it belongs with others."""

    name: str
    """As it was asked for."""
    version: str
    """What VERSION AS OF takes."""
    generation: str | None
    """Which table has these versions: one that was dropped and made again is another."""
    made_at: int | None
    """When the version was made, in microseconds."""
    steps_behind: int
    """How many versions there are after it."""


@dataclass(frozen=True)
class FoundVersions:
    """Versions of tables that belong together, and why there are none of some or all."""

    pins: tuple[PinnedVersion, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why not all tables are pinned. Empty if all are."""
    cut: tuple[str, ...] = ()
    """The versions of the tables upstream that all of them contain."""
    notes: tuple[str, ...] = ()
    """What isn't known of the lineage behind them, and doesn't touch the answer."""


class VersionFinder(Protocol):
    """Asked by several threads at a time. It may raise what it likes: what it raises is the reason then."""

    def find(self, tables: Sequence[str]) -> FoundVersions:
        """Return the newest versions of these tables, by their full names in Spark, that belong together."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class VersionFinderFactory(Protocol):
    def create(self, configuration: Mapping[str, str]) -> VersionFinder:
        """Return a finder for an application with this Spark configuration; a ConfigurationError if there can't be
        one."""
        ...


_LOG = logging.getLogger(__name__)
_THREADS: Final = 4
"""As many questions are answered at a time. One that the store leaves unanswered doesn't hold up the next ones."""
_TAKE_MILLIS: Final = 5_000
_FAILURES: Final = 3
_PAUSE_SECONDS: Final = 0.2


class Answering:
    """From `start` to `close`. The finder is made by the first question, since most applications ask none."""

    def __init__(self, reads: Any, make_finder: Callable[[], VersionFinder]) -> None:
        """`reads` is the Java object that has the questions."""
        self._reads = reads
        self._make_finder = make_finder
        self._lock = threading.Lock()
        self._finder: VersionFinder | None = None
        self._stopped = threading.Event()

    def start(self) -> None:
        for number in range(_THREADS):
            threading.Thread(target=self._run, name=f"headwater-consistent-{number}", daemon=True).start()

    def close(self) -> None:
        """Answer nothing any more. Waits for nobody."""
        self._stopped.set()
        with self._lock:
            finder, self._finder = self._finder, None
        if finder is not None:
            finder.close()

    def answer(self, tables: Iterable[str]) -> str:
        """Return the answer as the Java side reads it. Whatever goes wrong is the answer."""
        try:
            found = self._opened().find(tuple(tables))
        except Exception as e:  # noqa: BLE001 - the statement goes on with what its session says
            _LOG.debug("no versions were found", exc_info=True)
            found = FoundVersions(reasons=(f"{e}" if isinstance(e, PluginError) else _words(e),))
        return to_lines(found)

    def _opened(self) -> VersionFinder:
        with self._lock:
            if self._finder is None:
                self._finder = self._make_finder()
            return self._finder

    def _run(self) -> None:
        failures = 0
        while not self._stopped.is_set() and failures < _FAILURES:
            failures = 0 if self._answer_next() else failures + 1

    def _answer_next(self) -> bool:
        """Answer a question, if one comes soon. Returns whether the JVM is there."""
        try:
            question = self._reads.take(_TAKE_MILLIS)
            if question is not None and not self._stopped.is_set():
                number, *tables = str(question).split("\n")
                self._reads.answer(number, self.answer(tables))
        except Exception as e:  # noqa: BLE001 - the JVM may be gone, in whatever way py4j says that
            _LOG.debug("the driver's JVM doesn't answer: %s", e)
            self._stopped.wait(_PAUSE_SECONDS)
            return False
        return True


def to_lines(found: FoundVersions) -> str:
    """Return what was found as lines of words with tabs between them."""
    lines = [_pin_words(pin) for pin in found.pins]
    lines += [("why", reason) for reason in found.reasons]
    lines += [("note", note) for note in found.notes]
    if found.cut:
        lines.append(("cut", ", ".join(found.cut)))
    return "\n".join("\t".join(_one_line(word) for word in line) for line in lines)


def _pin_words(pin: PinnedVersion) -> tuple[str, ...]:
    made_at = -1 if pin.made_at is None else pin.made_at
    return ("pin", pin.name, pin.version, pin.generation or "", str(made_at), str(pin.steps_behind))


def _one_line(text: str) -> str:
    return " ".join(text.split()) if any(character in text for character in "\t\n\r") else text


def _words(error: Exception) -> str:
    text = _one_line(str(error)).rstrip(".")
    return text or type(error).__name__


PREFIX: Final = "spark.headwater.read."
KEY: Final = f"{PREFIX}consistent"
BRANCH_VERSIONS: Final = f"{PREFIX}branch.versions"
_FINDER: Final = "lineage"


def has_settings(configuration: Mapping[str, str]) -> bool:
    """Return whether an application's configuration has any setting of what sessions read. Without one nothing is
    installed, and no session can read consistently, or by names of branches."""
    return any(key.startswith(PREFIX) for key in configuration)


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
            _LOG.warning("%s* have no effect in this session: %s", PREFIX, e)


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
