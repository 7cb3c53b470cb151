"""Which properties a driver would have, and what is wrong in those of headwater."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from headwater.cli.flags import no_such
from headwater.config.sources import from_file, layered
from headwater.errors import ConfigurationError
from headwater.listeners.bus.making import wanted_listeners
from headwater.listeners.bus.secrets import redactor_of
from headwater.listeners.misspelt import misspelt
from headwater.listeners.settings import PREFIX, Settings, read_settings
from headwater.spi import Finding

CONFIGURATION: Final = "configuration"
_LISTS: Final = ("listeners", "catalog.listeners", "job.listeners")


@dataclass(frozen=True)
class Given:
    """The properties, where they are from, and what of them is headwater's."""

    conf: Mapping[str, str]
    sources: tuple[str, ...]
    settings: Settings
    faults: tuple[str, ...]


def gathered(properties_file: Path | None, conf: Mapping[str, str]) -> Given:
    """As spark-submit gathers them: the file's, and before them those that are given one by one."""
    file = properties_file or _default_file()
    faults: list[str] = []
    properties: Mapping[str, str] = {}
    if file is not None:
        try:
            properties = from_file(file)
        except ConfigurationError as e:
            faults.append(str(e))
    whole = layered(properties, conf)
    settings, more = read_settings(whole)
    _, wrong_lists = wanted_listeners(settings)
    _, bad_regex = redactor_of(whole)
    faults += [*map(str, more), *misspelt(whole), *map(str, wrong_lists), *map(str, bad_regex)]
    sources = [*([str(file)] if file is not None else []), *(["--conf"] if conf else [])]
    return Given(whole, tuple(sources), settings, tuple(faults))


def look_at_configuration(given: Given, only: frozenset[str]) -> Iterator[Finding]:
    own = [key for key in given.conf if key.startswith(PREFIX)]
    where = " and ".join(given.sources)
    for fault in given.faults:
        yield Finding.wrong("keys", fault, "until that is put right it counts as not given")
    if not own:
        words = f"no key begins with {PREFIX} in {where}" if where else "no properties were given, and none were found"
        yield Finding.doubtful("keys", words, "say which drivers have: --properties-file FILE, --conf KEY=VALUE")
    elif not given.faults:
        yield Finding.fine("keys", f"{len(own)} keys begin with {PREFIX}, from {where}")
    yield _enabled(given)
    yield from _listeners(given, only)
    yield from _metrics(given.settings)


def _enabled(given: Given) -> Finding:
    if given.settings.enabled:
        return Finding.fine("enabled", f"{PREFIX}enabled is true")
    words = f"{PREFIX}enabled isn't true: headwater does nothing, unless a job calls it or is run by `headwater run`"
    return Finding.doubtful("enabled", words, f"{PREFIX}enabled=true")


def _listeners(given: Given, only: frozenset[str]) -> Iterator[Finding]:
    names = given.settings.listener_names
    for each in sorted(only - {*names}):
        yield Finding.wrong("listeners", no_such("listener", each, names), "name one that the configuration has")
    if not names:
        words = f"{PREFIX}listeners names nobody: whatever is captured is told to no one"
        yield Finding.wrong("listeners", words, f"{PREFIX}listeners=kafka, or log for one that needs no server")
    elif not any(f"{PREFIX}{key}" in given.conf for key in _LISTS):
        yield Finding.fine("listeners", f"{PREFIX}listeners isn't given, so events go to a local log ({names[0]})")
    else:
        yield Finding.fine("listeners", f"events are told to {', '.join(names)}")


def _metrics(settings: Settings) -> Iterator[Finding]:
    asked = [key for key in ("port", "file") if getattr(settings, f"metrics_{key}") is not None]
    if asked and find_spec("prometheus_client") is None:
        words = f"{PREFIX}metrics.{asked[0]} is given, and prometheus-client isn't installed: there would be no metrics"
        yield Finding.wrong("metrics", words, "pip install 'headwater[metrics]'")


def _default_file() -> Path | None:
    """Where spark-submit looks."""
    home, directory = os.environ.get("SPARK_HOME"), os.environ.get("SPARK_CONF_DIR")
    places = [Path(directory)] if directory else [Path(home, "conf")] if home else []
    return next((file for place in places if (file := place / "spark-defaults.conf").is_file()), None)
