"""The SQL listener in the driver, seen from Python: what it listens to, and the texts that come out of it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from datetime import datetime, timezone
from functools import partial
from typing import Any, Final

from headwater.jvm.last_start import DriverStart, record_start
from headwater.jvm.loader import ClassOrigin
from headwater.listeners.capture.early_events import QUEUE, EarlyEvents
from headwater.listeners.capture.formats import installed, java_parts, plugins
from headwater.listeners.capture.formats.plugin import JavaPart
from headwater.listeners.capture.jvm import DegradedPart, JavaClasses, JavaError, root_message
from headwater.listeners.capture.plan_cache import ALL
from headwater.listeners.capture.records import VERSION
from headwater.listeners.capture.self_test import SelfTest
from headwater.listeners.settings import Settings

_LOG = logging.getLogger(__name__)
_MAX_WAITING_PLANS: Final = 1_000
"""How many plans may wait until they are read. They are read at the JVM's own speed, whatever Python does."""
_MAX_PLAN_BYTES: Final = 64 << 20
"""About how many bytes of the heap they may keep in use."""
OWN_TAG: Final = "headwater-own"
"""A job tag: statements that carry it aren't the job's doing, and aren't recorded."""
STREAMS: Final = "StreamRuns"
"""What captures streaming queries, where the classes of streaming are as it knows them."""


def split_records(text: str | None) -> list[str]:
    """The records of a text, each of which ends with a line feed. `str.splitlines` ends lines at U+0085 and others too,
    which a comment or a path may have in it."""
    return text.split("\n")[:-1] if text else []


def exclude_from_capture(spark_context: Any) -> None:
    """What the calling thread does in Spark from now on isn't the job's doing, and isn't recorded: a listener that
    writes with Spark would else record its own writes for ever."""
    if type(spark_context._gateway).__name__ == "ClientServer":  # else the tag would be on any thread of the JVM
        spark_context.addJobTag(OWN_TAG)


class DriverListener:
    """Registered for one SparkContext, from `start` to `stop`."""

    def __init__(self, spark_context: Any, settings: Settings, ignored: Iterable[str] = ()) -> None:
        self._context = spark_context
        self._spark = spark_context._jsc.sc()
        self._java = JavaClasses(spark_context)
        self._hooks = settings.capture_hooks == "auto"
        self._installed: list[str] = []
        self.degraded: list[DegradedPart] = []
        """What should be there and isn't: reported as Gaps."""
        for broken in installed().broken:
            self.degraded.append(DegradedPart(broken.name, broken.why))
        self._leave_out_what_is_broken()
        self._parts = self._java.new("Parts")
        self._check_version()
        self._self_test = self._begin_self_test()
        for extractor in self._make_extractors():
            self._parts.add(extractor)
        self._listener = self._parts.listener(
            self._spark,
            self._parts.make(STREAMS if self._java.has_source(STREAMS) else "NoStreamCapture"),
            settings.capture_reads,
            settings.capture_sql,
            _MAX_WAITING_PLANS,
            _MAX_PLAN_BYTES,
            settings.capture_queue_count,
            settings.capture_queue_bytes,
        )
        self._listener.ignore("\n".join(sorted(ignored)))
        self._listener.addLibraries("\n".join(name for plugin in plugins() for name in plugin.packages))
        self._listener.setTableLogs("\n".join(plugin.log_directory for plugin in plugins() if plugin.log_directory))

    @property
    def sees_outside_commits(self) -> bool:
        """Whether a hook shows what is committed to tables of a format, also where no statement does it."""
        always = {name for part in self._java.present() if part.always_hooked for name in part.hooks}
        return not always.issuperset(self._installed)

    def start(self, early: EarlyEvents | None = None) -> None:
        """Hooks first: what they don't see of a statement is looked for, and nobody knows of what is none."""
        self._parts.attach(self._spark)
        for part in self._java.present():
            self._install(part)
        self._listener.start()
        register = partial(self._spark.listenerBus().addToQueue, self._listener, QUEUE)
        if early is None:
            register()
        elif early.hand_over(self._read_first, register):
            self._listener.endEarly()

    def take(self, most: int, seconds: float, forgotten: Collection[str] = ()) -> list[str]:
        """The next texts, a record each; waits that long for the first. `forgotten` are digests of plans that came
        with earlier ones, and aren't there any more; `*` if nobody knows which."""
        if forgotten:
            self._listener.forget(ALL if ALL in forgotten else ",".join(forgotten))
        return split_records(self._listener.take(most, int(seconds * 1000)))

    def settle(self, token: str, seconds: float) -> bool:
        """Have a mark with this token come out of `take` behind all that Spark has posted so far."""
        return bool(self._listener.settle(token, int(seconds * 1000)))

    def finish_self_test(self) -> list[DegradedPart]:
        """Wait until all was looked for that is reached by reflection; what reads something that isn't there."""
        if self._self_test is None:
            return []
        found = self._self_test.finish(str(self._context.version))
        for part in found:
            self._degrade(part)
        return found

    def keep_begun_classes(self) -> None:
        """Keep the class files that were compiled for the start, of which drivers to come need no more either."""
        self._java.keep_begun()

    def keep_classes(self) -> None:
        """Keep the class files that were compiled here for drivers to come, with what the self-test found."""
        if self._self_test is not None and self._self_test.missing is not None:
            self._java.keep(self._self_test.missing)

    @property
    def are_classes_archived(self) -> bool:
        return self._java.is_archived

    def record_start(self) -> None:
        """Note where this driver has its classes from, for `headwater doctor`."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        origin, java = self._java.state.origin, self._java.class_path.java
        record_start(DriverStart(origin, str(self._spark.applicationId()), str(self._context.version), java, now))

    def end_waiting(self) -> bool:
        """Have `settle` report what waits for something as it is by now; return whether there may be anything."""
        return bool(self._java.call("CommitRecorder", "end"))

    def stop(self) -> None:
        """Nothing of it is active any more. What a format's registry can't remove stays, and does nothing."""
        self._spark.listenerBus().removeListener(self._listener)
        self._listener.stop()
        for name in self._installed:
            self._uninstall(name)
        self._parts.detach(self._spark)

    def _read_first(self, kept: Any) -> None:
        self._listener.readFirst(kept.events(), kept.last(), kept.lost())

    def _check_version(self) -> None:
        """A JVM keeps its classes, also for a Python with another headwater that comes later."""
        found = self._parts.recordVersion()
        if found != VERSION:
            raise JavaError(
                f"this driver's JVM has another headwater's classes, which write records of version {found}, not "
                f"{VERSION}: start the driver anew with one version of headwater"
            )

    def _leave_out_what_is_broken(self) -> None:
        """A format of another version than ours are made for must not keep the others from being seen."""
        state = self._java.state
        for name, why in state.facts.left_out.items():
            self._degrade(DegradedPart(name, why))
        if state.origin is not ClassOrigin.COMPILER:
            return  # what can't be compiled was found out when the archives were made
        parts = self._java.present()
        extractors = [part.extractor for part in parts if part.extractor is not None]
        names = [STREAMS, *extractors, *(hook for part in parts for hook in part.hooks)]
        while names:
            sound = [name for name in names if not self._java.has_source(name) or self._compiles(name)]
            names = sound if sound != names else []

    def _begin_self_test(self) -> SelfTest | None:
        present = self._java.present()
        others = [part for part in java_parts() if part not in present]
        absent = [name.removesuffix(".java") for part in others for name in part.sources()]
        if not self._java.has_source(STREAMS):
            absent.append("Stream")
        try:
            return SelfTest(self._java, absent)
        except JavaError as e:
            self._degrade(DegradedPart("SelfTest", str(e)))
            return None

    def _compiles(self, name: str) -> bool:
        try:
            self._java.load(name)
        except JavaError as e:
            self._degrade(DegradedPart(name, str(e)))
            self._java.leave_out(name, str(e))
            return False
        return True

    def _make_extractors(self) -> list[Any]:
        extractors: list[Any] = []
        for part in self._java.present():
            if part.extractor is not None and self._java.has_source(part.extractor):
                try:
                    extractors.append(self._parts.make(part.extractor))
                except Exception as e:  # noqa: BLE001 - whatever this version of the format throws
                    self._degrade(DegradedPart(part.extractor, root_message(e)))
        return extractors

    def _install(self, part: JavaPart) -> None:
        if not (self._hooks or part.always_hooked):
            return
        for name in part.hooks:
            if self._java.has_source(name):
                try:
                    self._parts.call(name, "install")
                    self._installed.append(name)
                except Exception as e:  # noqa: BLE001 - as above
                    self._degrade(DegradedPart(name, root_message(e)))

    def _degrade(self, part: DegradedPart) -> None:
        _LOG.warning("%s", part)
        self.degraded.append(part)

    def _uninstall(self, name: str) -> None:
        try:
            self._parts.call(name, "uninstall")
        except Exception as e:  # noqa: BLE001 - as above
            _LOG.debug("%s can't be uninstalled: %s", name, root_message(e))
