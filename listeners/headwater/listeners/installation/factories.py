"""What an installation is put together from. Tests put in parts of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from headwater.events.base import CountMap, StringMap
from headwater.events.envelope import Event
from headwater.events.jobs import JobStarted, JobType, RunScope
from headwater.events.names import JobName
from headwater.events.producer import Producer
from headwater.listeners.bus import Bus, BusOptions, BusReport
from headwater.listeners.capture import Capture
from headwater.listeners.capture.command_registry import all_commands
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.early_events import EarlyEvents
from headwater.listeners.capture.formats import installed
from headwater.listeners.installation.application_environment import read_environment
from headwater.listeners.jobs import ApplicationRuns
from headwater.listeners.redactors import make_redactor, read_hash_key
from headwater.listeners.settings import DEFAULT_LISTENER, Settings
from headwater.plugins import OWN_PLUGINS, load, own_version
from headwater.spi import Application
from headwater.spi.factories import LISTENERS


class InstalledBus(Protocol):
    """What of `headwater.listeners.bus.Bus` is used here."""

    @property
    def metrics_url(self) -> str | None: ...
    def attribute(self, job: JobName | None, run: UUID | None) -> None: ...
    def emit(self, draft: Event) -> tuple[Event, ...]: ...
    def dropped(self) -> CountMap: ...
    def report(self) -> BusReport: ...
    def flush(self, timeout: float) -> bool: ...
    def stop(self, timeout: float) -> bool: ...


class InstalledCapture(Protocol):
    """What of `headwater.listeners.capture.Capture` is used here."""

    @property
    def sees_outside_commits(self) -> bool: ...
    def start(self) -> None: ...
    def drain(self, timeout: float) -> bool: ...
    def close(self, timeout: float) -> None: ...


class OpenBus(Protocol):
    """`headwater.listeners.bus.Bus.open`."""

    def __call__(
        self, configuration: Mapping[str, str], application: Application, *, options: BusOptions
    ) -> InstalledBus: ...


@dataclass(frozen=True)
class InstallationFactories:
    open_bus: OpenBus
    make_capture: Callable[[Any, Settings, Any, ApplicationRuns, EarlyEvents], InstalledCapture]
    """Of a SparkContext, the settings, the bus, the jobs, and what Spark reports before it is ready."""


def _make_capture(
    spark_context: Any, settings: Settings, bus: Any, jobs: ApplicationRuns, early: EarlyEvents
) -> InstalledCapture:
    configuration = jobs.configuration
    redactor, _ = make_redactor(configuration, read_hash_key(settings))
    context = CaptureContext(
        read_environment(spark_context, configuration, settings.namespaces),
        configuration,
        redactor,
        installed(),
        settings.capture_sql,
    )
    return Capture(spark_context, settings, bus, jobs, context, early=early)


def prepare(listeners: str | None = None) -> None:
    """Do what else the first installation and its first event would wait for: formats and our own listeners are
    imported, and patterns and models compiled, when they are first asked for. `listeners` is the value of that key."""
    all_commands()
    redactor, _ = make_redactor({})
    draft = JobStarted(
        job=JobName(name="nobody's"),
        job_type=JobType.BATCH,
        scope=RunScope.APPLICATION,
        configuration=StringMap({"spark.nothing": "local[1]"}),
        headwater_version=own_version(),
    )
    Producer("", redactor=redactor).emit(draft, lambda _event, _data: None)
    # Others' listeners may hang when they are imported: each has a thread of its own for that.
    asked = {item.strip() for item in (listeners or DEFAULT_LISTENER).split(",")}
    for name in asked.intersection(OWN_PLUGINS[LISTENERS]):
        load(LISTENERS, name)


DEFAULT_FACTORIES = InstallationFactories(Bus.open, _make_capture)
