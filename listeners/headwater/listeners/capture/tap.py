"""The tap in the driver, seen from Python: what it listens to, and the texts that come out of it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

from headwater.listeners.capture.jvm import Degraded, Java, JavaError
from headwater.listeners.settings import Settings

_LOG = logging.getLogger(__name__)
QUEUE: Final = "headwater"
_MOST_PLANS: Final = 1_000
"""How many plans may wait until they are read. They are read at the JVM's own speed, whatever Python does."""
_PLAN_WEIGHT: Final = 64 << 20
"""About how many bytes of the heap they may keep in use."""
OWN_TAG: Final = "headwater-own"
"""A job tag: statements that carry it aren't the job's doing, and aren't told."""
_SPARKS_OWN: Final = frozenset({"Catalog"})
"""Hooks that reach into nobody's library: registered where Spark lets listeners register."""


def disown(context: Any) -> None:
    """What the calling thread does in Spark from now on isn't the job's doing, and isn't told: a listener that writes
    with Spark would else be told of its own writes for ever."""
    if type(context._gateway).__name__ == "ClientServer":  # else the tag would be on any thread of the JVM
        context.addJobTag(OWN_TAG)


class Tap:
    """Registered for one SparkContext, from `start` to `stop`."""

    def __init__(self, context: Any, settings: Settings, ignored: Iterable[str] = ()) -> None:
        self._context = context
        self._spark = context._jsc.sc()
        self._java = Java(context)
        self._hooks = settings.capture_hooks == "auto"
        self._installed: list[str] = []
        self.degraded: list[Degraded] = []
        """What should be there and isn't: told as Gaps."""
        self._leave_out_what_is_broken()
        self._tap = self._java.new(
            "Tap",
            self._spark,
            self._java.array("Eye", self._eyes()),
            settings.capture_reads,
            settings.capture_sql,
            _MOST_PLANS,
            _PLAN_WEIGHT,
            settings.capture_queue_count,
            settings.capture_queue_bytes,
        )
        self._tap.ignore(self._java.list(sorted(ignored)))

    def start(self) -> None:
        self._java.call_with_context("Facts", "attach", self._spark)
        for part in self._java.present():
            self._install(part)
        self._tap.start()
        self._spark.listenerBus().addToQueue(self._tap, QUEUE)

    def take(self, most: int, seconds: float) -> list[str]:
        """The next texts, a record each; waits that long for the first."""
        text = self._tap.take(most, int(seconds * 1000))
        return [] if text is None else text.splitlines()

    def settle(self, token: str, seconds: float) -> bool:
        """Have a mark with this token come out of `take` behind all that Spark has posted so far."""
        return bool(self._tap.settle(token, int(seconds * 1000)))

    def stop(self) -> None:
        """Nothing of it is active any more. What a format's registry can't remove stays, and does nothing."""
        self._spark.listenerBus().removeListener(self._tap)
        self._tap.stop()
        for part in self._installed:
            self._quietly(part, "uninstall")
        self._java.call_with_context("Facts", "detach", self._spark)

    def _leave_out_what_is_broken(self) -> None:
        """A format of another version than ours are made for must not keep the others from being seen."""
        for name in self._java.left_out():
            self._degrade(name, JavaError("it couldn't be compiled in this JVM before"))
        names = [f"{part}{kind}" for part in self._java.present() for kind in ("Hook", "Eye")]
        while names:
            sound = [name for name in names if not self._java.has_source(name) or self._compiles(name)]
            names = sound if sound != names else []

    def _compiles(self, name: str) -> bool:
        try:
            self._java.load(name)
        except JavaError as e:
            self._degrade(name, e)
            self._java.leave_out(name)
            return False
        return True

    def _eyes(self) -> list[Any]:
        eyes: list[Any] = []
        for part in self._java.present():
            if self._java.has_source(f"{part}Eye"):
                try:
                    eyes.append(self._java.new(f"{part}Eye"))
                except JavaError as e:
                    self._degrade(f"{part}Eye", e)
        return eyes

    def _install(self, part: str) -> None:
        if not self._java.has_source(f"{part}Hook") or not (self._hooks or part in _SPARKS_OWN):
            return
        try:
            self._java.call(f"{part}Hook", "install")
            self._installed.append(part)
        except JavaError as e:
            self._degrade(f"{part}Hook", e)

    def _degrade(self, part: str, error: JavaError) -> None:
        _LOG.warning("%s isn't there, so less is exact: %s", part, error)
        self.degraded.append(Degraded(part, str(error)))

    def _quietly(self, part: str, method: str) -> None:
        try:
            self._java.call(f"{part}Hook", method)
        except JavaError as e:
            _LOG.debug("%s", e)
