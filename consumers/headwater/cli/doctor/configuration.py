"""Which properties a driver would have, and what is wrong in those of headwater."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from headwater.cli.flags import no_such
from headwater.config.sources import from_file, layered
from headwater.config.spark_submit import find_spark_defaults
from headwater.errors import ConfigurationError
from headwater.listeners.bus.listener_creation import configured_listeners
from headwater.listeners.misspellings import find_misspellings
from headwater.listeners.redactors import make_redactor
from headwater.listeners.settings import PREFIX, Settings, read_settings
from headwater.plugins import extra_command
from headwater.spi import CheckResult

CONFIGURATION: Final = "configuration"
_LISTS: Final = ("listeners", "catalog.listeners", "job.listeners")


@dataclass(frozen=True)
class DriverConfiguration:
    """The properties of a driver, where they are from, and the settings of headwater among them."""

    conf: Mapping[str, str]
    sources: tuple[str, ...]
    settings: Settings
    faults: tuple[str, ...]


def read_configuration(properties_file: Path | None, conf: Mapping[str, str]) -> DriverConfiguration:
    """Read the properties as spark-submit does: those of the file, and over them those given one by one."""
    file = properties_file or find_spark_defaults()
    faults: list[str] = []
    properties: Mapping[str, str] = {}
    if file is not None:
        try:
            properties = from_file(file)
        except ConfigurationError as e:
            faults.append(str(e))
    whole = layered(properties, conf)
    settings, more = read_settings(whole)
    _, wrong_lists = configured_listeners(settings)
    _, bad_regex = make_redactor(whole)
    faults += [*map(str, more), *find_misspellings(whole), *map(str, wrong_lists), *map(str, bad_regex)]
    sources = [*([str(file)] if file is not None else []), *(["--conf"] if conf else [])]
    return DriverConfiguration(whole, tuple(sources), settings, tuple(faults))


def check_configuration(given: DriverConfiguration, only: frozenset[str]) -> Iterator[CheckResult]:
    own = [key for key in given.conf if key.startswith(PREFIX)]
    where = " and ".join(given.sources)
    for fault in given.faults:
        yield CheckResult.error("keys", fault, "until that is put right it counts as not given")
    if not own:
        words = f"no key begins with {PREFIX} in {where}" if where else "no properties were given, and none were found"
        yield CheckResult.warning("keys", words, "say which drivers have: --properties-file FILE, --conf KEY=VALUE")
    elif not given.faults:
        yield CheckResult.ok("keys", f"{len(own)} keys begin with {PREFIX}, from {where}")
    yield _enabled(given)
    yield from _listeners(given, only)
    yield from _metrics(given.settings)


def _enabled(given: DriverConfiguration) -> CheckResult:
    if given.settings.enabled:
        return CheckResult.ok("enabled", f"{PREFIX}enabled is true")
    words = f"{PREFIX}enabled isn't true: headwater does nothing, unless a job calls it or is run by `headwater run`"
    return CheckResult.warning("enabled", words, f"{PREFIX}enabled=true")


def _listeners(given: DriverConfiguration, only: frozenset[str]) -> Iterator[CheckResult]:
    names = given.settings.listener_names
    for each in sorted(only - {*names}):
        yield CheckResult.error("listeners", no_such("listener", each, names), "name one that the configuration has")
    if not names:
        words = f"{PREFIX}listeners names nobody: whatever is captured is delivered to no one"
        yield CheckResult.error("listeners", words, f"{PREFIX}listeners=kafka, or log for one that needs no server")
    elif not any(f"{PREFIX}{key}" in given.conf for key in _LISTS):
        yield CheckResult.ok("listeners", f"{PREFIX}listeners isn't given, so events go to a local log ({names[0]})")
    else:
        yield CheckResult.ok("listeners", f"events are delivered to {', '.join(names)}")


def _metrics(settings: Settings) -> Iterator[CheckResult]:
    asked = [key for key in ("port", "file") if getattr(settings, f"metrics_{key}") is not None]
    if asked and find_spec("prometheus_client") is None:
        words = f"{PREFIX}metrics.{asked[0]} is given, and prometheus-client isn't installed: there would be no metrics"
        yield CheckResult.error("metrics", words, extra_command("metrics"))
