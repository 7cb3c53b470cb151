"""What an installation is put together from. Tests put in parts of their own.

Where a driver stands: how it is configured, on which host, with which file system and metastore by default.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol
from uuid import UUID

from headwater.events.base import CountMap, StringMap
from headwater.events.envelope import Event
from headwater.events.identity import Environment
from headwater.events.identity.namespaces import PREFIX as NAMESPACES
from headwater.events.jobs import JobStarted, JobType, RunScope
from headwater.events.names import JobName
from headwater.events.producer import Producer
from headwater.jvm.loader import java_class
from headwater.listeners.bus import Bus, BusOptions, BusReport
from headwater.listeners.capture import Capture
from headwater.listeners.capture.command_registry import all_commands
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.early_events import EarlyEvents
from headwater.listeners.capture.formats import installed
from headwater.listeners.jobs import ApplicationRuns
from headwater.listeners.redactors import make_redactor, read_hash_key
from headwater.listeners.settings import DEFAULT_LISTENER, Settings
from headwater.plugins import OWN_PLUGINS, load, own_version
from headwater.spi import Application
from headwater.spi.factories import LISTENERS

_LOG = logging.getLogger(__name__)
_HADOOP_KEYS: Final = (
    "fs.defaultFS",
    "dfs.nameservices",
    "hive.metastore.uris",
    "hive.metastore.warehouse.dir",
    "javax.jdo.option.ConnectionURL",
    "hive.metastore.glue.catalogid",
    "aws.region",
)
"""Keys that Hadoop's own files (core-site.xml, hive-site.xml …) may say."""
_DERBY_HOME: Final = "derby.system.home"
"""A property of the JVM: where a metastore in the driver is, if its own address doesn't say it."""
_HIDDEN: Final = "*********(redacted)"
"""What Spark's own text of a configuration has in the place of a secret."""


def read_configuration(context: Any) -> dict[str, str]:
    """All entries of a SparkContext's configuration. pyspark asks the JVM four times for each, which takes a tenth of
    what headwater adds to a start; Spark's text of it has a line for each. What a line can't say for sure is asked."""
    conf = context._conf
    lines = [line.partition("=") for line in conf.toDebugString().split("\n")]
    found: dict[str, Any] = {key: value for key, _, value in lines}
    if len(lines) == len(found) == len(conf._jconf.getAll()):  # else there are values of several lines
        unsure = [key for key, value in found.items() if value == _HIDDEN or "=" in value]
        found.update((key, conf.get(key)) for key in unsure)
        if None not in found.values():  # else there is a key with an equals sign
            return found
    return dict(conf.getAll())


def read_environment(context: Any, configuration: Mapping[str, str], names: Mapping[str, str]) -> Environment:
    """Of a SparkContext. What its configuration doesn't say, Hadoop's is asked. `names` are the logical names of hosts
    that are right: one that isn't must not take the others, and all that is captured, along."""
    own = {key: value for key, value in configuration.items() if not key.startswith(NAMESPACES)}
    known = {**_read_hadoop(context), **own, **{f"{NAMESPACES}{name}": hosts for name, hosts in names.items()}}
    return Environment.from_conf(known, host=socket.gethostname(), working_directory=str(Path.cwd()))


def _read_hadoop(context: Any) -> dict[str, str]:
    try:
        hadoop = context._jsc.hadoopConfiguration()
        said = {key: hadoop.get(key) for key in _HADOOP_KEYS}
        said[_DERBY_HOME] = java_class(context._gateway, "java.lang.System").getProperty(_DERBY_HOME)
    except Exception as e:  # noqa: BLE001 - py4j raises what it likes
        _LOG.debug("Hadoop's configuration can't be read: %s", e)
        return {}
    return {key: value for key, value in said.items() if value}


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
