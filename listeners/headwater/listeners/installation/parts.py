"""What an installation is put together from. Tests put in parts of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from headwater.events.base import Counts
from headwater.events.envelope import Event
from headwater.events.names import JobName
from headwater.listeners.bus import Bus, BusOptions, BusReport
from headwater.listeners.bus.secrets import redactor_of
from headwater.listeners.capture import Capture
from headwater.listeners.capture.scene import Scene
from headwater.listeners.installation.site import site_of
from headwater.listeners.jobs import Jobs
from headwater.listeners.settings import Settings
from headwater.spi import Application


class BusPart(Protocol):
    """What of `headwater.listeners.bus.Bus` is used here."""

    @property
    def metrics_url(self) -> str | None: ...
    def attribute(self, job: JobName | None, run: UUID | None) -> None: ...
    def tell(self, draft: Event) -> tuple[Event, ...]: ...
    def dropped(self) -> Counts: ...
    def report(self) -> BusReport: ...
    def flush(self, timeout: float) -> bool: ...
    def stop(self, timeout: float) -> bool: ...


class CapturePart(Protocol):
    """What of `headwater.listeners.capture.Capture` is used here."""

    def start(self) -> None: ...
    def drain(self, timeout: float) -> bool: ...
    def close(self, timeout: float) -> None: ...


class OpenBus(Protocol):
    """`headwater.listeners.bus.Bus.open`."""

    def __call__(
        self, configuration: Mapping[str, str], application: Application, *, options: BusOptions
    ) -> BusPart: ...


@dataclass(frozen=True)
class Parts:
    open_bus: OpenBus
    make_capture: Callable[[Any, Settings, Any, Jobs], CapturePart]
    """Of a SparkContext, the settings, the bus and the jobs."""


def _make_capture(context: Any, settings: Settings, bus: Any, jobs: Jobs) -> CapturePart:
    configuration = dict(context._conf.getAll())
    redactor, _ = redactor_of(configuration)
    scene = Scene(site_of(context, configuration, settings.namespaces), configuration, redactor, settings.capture_sql)
    return Capture(context, settings, bus, jobs, scene)


REAL = Parts(Bus.open, _make_capture)
