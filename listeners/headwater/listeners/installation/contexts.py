"""The SparkContexts of this process that headwater is in: installed, one after the other, and ended with it."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Any, Final

from headwater.errors import TerminalError
from headwater.listeners import hook
from headwater.listeners.installation.exits import ExitWatcher
from headwater.listeners.installation.factories import DEFAULT_FACTORIES, InstallationFactories
from headwater.listeners.installation.installation import STOP_SECONDS, Installation
from headwater.listeners.jobs import ENDED, FINISHED, RunEnd, blocks

_LOG = logging.getLogger(__name__)
_WAIT_FOR_EXIT_SECONDS: Final = 10.0
"""So long after a stop() with an exception on its way the exception may still turn out to end the process."""


class InstallationError(TerminalError):
    """What is given is nothing that headwater can be installed in."""


class InstalledContexts:
    """One for the process. Its lock is never held while something is waited for, and a signal handler may take it."""

    def __init__(self, factories: InstallationFactories = DEFAULT_FACTORIES) -> None:
        self.factories = factories
        self.exits = ExitWatcher(self.end_all)
        self._lock = threading.RLock()
        self._running: list[Installation] = []
        self._unfinished: dict[Installation, RunEnd] = {}
        """Stopped, their end still open: what to tell if nothing shows it."""
        self._stop: tuple[Any, Callable[..., None], Callable[..., None]] | None = None
        self.on_begin: list[Callable[[Any], None]] = []
        """Called with each context that headwater was installed in."""

    def begin(self, context: Any) -> Installation:
        """Install headwater in this context, unless it is there already."""
        with self._lock:
            known = self.of(context)
            if known is not None:
                return known
            unfinished = {**self._take_unfinished(), **dict.fromkeys(self._running, ENDED)}  # stopped behind our back
            installation = Installation(context, self.factories, uninstall)
            self._running = [installation]
            self._watch(context)
        for each, ending in unfinished.items():
            each.end(ending)
        installation.start()
        for call in self.on_begin:
            call(context)
        return installation

    def of(self, context: Any) -> Installation | None:
        """Return headwater in this context, if it is there."""
        with self._lock:
            return next((each for each in self._running if each.context is context), None)

    def context_stops(self, context: Any) -> None:
        """Before Spark's own stop: tell what the context did and, if that is known already, how it ended."""
        with self._lock:
            stopped = next((each for each in self._running if each.context is context), None)
            if stopped is None:
                return
            self._running.remove(stopped)
            ending = self.exits.end_at_stop()
            if ending is None:
                self._unfinished[stopped] = ENDED if self.exits.is_unwinding() else FINISHED
        if ending is not None:
            stopped.end(ending)
        else:
            stopped.finish_capture(STOP_SECONDS / 2)
            if not self.exits.is_end_awaited:
                self._end_later(stopped)

    def set_expected_end(self, ending: RunEnd) -> None:
        """The process is about to end so."""
        with self._lock:
            running = list(self._running)
        for each in running:
            if each.jobs is not None:
                each.jobs.set_expected_end(ending)

    def end_all(self, ending: RunEnd) -> None:
        """The process ends so."""
        with self._lock:
            ended = [*self._take_unfinished(), *self._running]
            self._running.clear()
        for each in ended:
            each.end(ending)

    def uninstall(self, context: Any = None) -> None:
        """Leave this context, or all and the interpreter too."""
        with self._lock:
            left = [each for each in self._running if context is None or each.context is context]
            self._running = [each for each in self._running if each not in left]
            unfinished = self._take_unfinished()
            if not self._running:
                self._unwatch()
        for each in left:
            each.end(ENDED)
        for each, ending in unfinished.items():
            each.end(ending)
        if context is None:
            hook.unwatch()

    def forget(self) -> None:
        """In a forked child nothing is at work: the threads are the parent's, and so is the JVM."""
        self._lock = threading.RLock()
        self._running.clear()
        self._unfinished.clear()
        self.exits.forget()
        blocks.forget()

    def _take_unfinished(self) -> dict[Installation, RunEnd]:
        taken, self._unfinished = self._unfinished, {}
        return taken

    def _end_later(self, stopped: Installation) -> None:
        def end() -> None:
            with self._lock:
                ending = self._unfinished.pop(stopped, None)
            if ending is not None:
                stopped.end(ending)

        timer = threading.Timer(_WAIT_FOR_EXIT_SECONDS, end)
        timer.daemon = True
        timer.start()

    def _watch(self, context: Any) -> None:
        hook.watch_exit()
        self.exits.watch()
        if self._stop is not None:
            return
        spark_context: Any = _spark_context_class(context)
        original: Callable[..., None] = spark_context.stop

        def stop(stopped: Any) -> None:
            try:
                self.context_stops(stopped)
            except Exception as e:  # noqa: BLE001 - Spark's own stop comes, whatever becomes of ours
                _LOG.warning("reporting the end of the application: %s: %s", type(e).__name__, e)
            original(stopped)

        stop.__doc__ = original.__doc__
        stop.__wrapped__ = original  # type: ignore[attr-defined]
        spark_context.stop = stop
        self._stop = (spark_context, original, stop)

    def _unwatch(self) -> None:
        """Where somebody has put something over ours, that stays, and ours passes everything on."""
        self.exits.unwatch()
        if self._stop is not None and self._stop[0].stop is self._stop[2]:
            self._stop[0].stop = self._stop[1]
            self._stop = None


def _spark_context_class(context: Any) -> Any:
    """pyspark's own class, where `stop` is: the context's may be derived from it."""
    of_spark = (each for each in type(context).__mro__ if "stop" in vars(each) and "_do_init" in vars(each))
    return next(of_spark, type(context))


contexts: Final = InstalledContexts()
os.register_at_fork(after_in_child=contexts.forget)


def begin(context: Any) -> Installation:
    """For the hook: a context was made whose configuration enables headwater."""
    return contexts.begin(context)


def install(spark: Any) -> Installation:
    """Install headwater in the driver of this SparkSession, or SparkContext. What is there already stays as it is.

    `spark.headwater.*` of its configuration says which listeners there are. Where something isn't right, the log says
    so and the job goes on. A TerminalError if this is nothing to install headwater in.
    """
    return contexts.begin(_spark_context_of(spark))


def uninstall(spark: Any = None) -> None:
    """Take headwater out of the driver of this SparkSession or SparkContext; without one, out of this interpreter:
    nothing of it is active any more, and contexts to come are left alone, whatever their configuration says."""
    contexts.uninstall(None if spark is None else _spark_context_of(spark))


def at_exit() -> None:
    """The interpreter ends, and nobody stopped the context."""
    contexts.end_all(contexts.exits.end_at_exit())
    contexts.exits.die_of_signal()


def _spark_context_of(spark: Any) -> Any:
    try:
        context = spark if hasattr(type(spark), "_do_init") else spark.sparkContext
    except Exception as e:  # what a Spark Connect session raises is pyspark's own
        raise InstallationError(
            f"headwater can't be installed in a {type(spark).__module__}.{type(spark).__qualname__}: give it the "
            "SparkSession or SparkContext of a driver; for Spark Connect enable it on the server"
        ) from e
    if getattr(context, "_jsc", None) is None:
        raise InstallationError("this SparkContext is stopped: make another one, and install headwater in that")
    return context
