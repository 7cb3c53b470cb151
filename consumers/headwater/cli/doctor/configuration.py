"""Which properties a driver would have, and what is wrong in those of headwater.

Whether catalogs are declared as they were declared first: their options about lineage are immutable.

Nothing that the doctor prints holds a secret: not those of the configuration, and none that looks like one.

The places that this Python is installed in are none, whatever their folders are called: what the doctor advises names
them, and `~/token-service/.venv/bin/python -m pip install …` has to be readable.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from headwater.cli.flags import no_such
from headwater.config.sources import from_file, layered
from headwater.config.spark_submit import find_spark_defaults
from headwater.errors import ConfigurationError, HeadwaterError
from headwater.events.redaction import Redactor
from headwater.listeners.bus.listener_creation import configured_listeners
from headwater.listeners.misspellings import find_misspellings
from headwater.listeners.redactors import make_redactor
from headwater.listeners.settings import PREFIX, Settings, read_settings
from headwater.plugins import extra_command, source_directory
from headwater.spi import CheckResult

_STEP: Final = "catalogs"
_SWITCH: Final = re.compile(r"spark\.sql\.catalog\.(?P<catalog>[^.]+)\.(?P<option>table-lineage|data-lineage)")
_URL: Final = "spark.headwater.jdbc."


def check_catalog_options(conf: Mapping[str, str]) -> Iterator[CheckResult]:
    """Compare the switches of catalogs with what the store has, where the driver writes to a store itself."""
    wanted = {(found["catalog"], found["option"]): value for found, value in _switches(conf)}
    options = {f"jdbc.{key[len(_URL) :]}": value for key, value in conf.items() if key.startswith(_URL)}
    if not wanted or "jdbc.url" not in options:
        return
    try:
        first = _declared_first(options)
    except HeadwaterError as e:
        yield CheckResult.warning(_STEP, f"what was declared first isn't known: {e}", "see to the store")
        return
    for (catalog, option), value in sorted(wanted.items()):
        holds = first.get((catalog, option), value)
        if holds != ("false" if value.strip().lower() == "false" else "true"):
            words = f"{option} of {catalog} is {value.strip()} here, and {holds} was declared first, which holds"
            yield CheckResult.error(_STEP, words, f"spark.sql.catalog.{catalog}.{option}={holds}, or another catalog")


def _switches(conf: Mapping[str, str]) -> Iterator[tuple[re.Match[str], str]]:
    for key, value in conf.items():
        found = _SWITCH.fullmatch(key)
        if found is not None:
            yield found, value


def _declared_first(options: Mapping[str, str]) -> dict[tuple[str, str], str]:
    from headwater.lineage.questions.gaps.reported import load_switches  # noqa: PLC0415 - it imports SQLAlchemy
    from headwater.lineage.sql.errors import translate_errors  # noqa: PLC0415
    from headwater.lineage.store import StoreOptions, open_store  # noqa: PLC0415

    with (
        open_store(StoreOptions.of_catalog(options), readonly=True) as store,
        translate_errors(store.target.words),
        store.engine.connect() as connection,
    ):
        return {(switch.catalog, switch.name): switch.value for switch in load_switches(connection)}


_HIDDEN: Final = "***"
_SWITCHES: Final = frozenset({"", "true", "false"})
_QUOTED: Final = re.compile(r"=\s*(?:\"([^\"]*)\"|'([^']*)')")
_USER_INFO: Final = re.compile(r"//([^/@\s]*)@")
_SHORT: Final = 4
_FIRST_STAND_IN: Final = 0xE000
"""The first character that means nothing to anybody; each of the known places has one of its own."""


class SecretMasker:
    """Hides what a configuration calls a secret, and every part of it that gives it away."""

    def __init__(self, conf: Mapping[str, str]) -> None:
        self._redactor, _ = make_redactor(conf)
        found = {part for key, value in conf.items() for part in _parts(self._redactor, key, value)}
        words = sorted(found - _SWITCHES, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_found_by, words))) if words else None
        self._places = {chr(number): place for number, place in enumerate(_known_places(), _FIRST_STAND_IN)}

    def mask(self, finding: CheckResult) -> CheckResult:
        return replace(
            finding, step=self.text(finding.step), message=self.text(finding.message), advice=self.text(finding.advice)
        )

    def text(self, text: str) -> str:
        hidden = self._pattern.sub(_HIDDEN, text) if self._pattern else text
        for stand_in, place in self._places.items():
            hidden = re.sub(rf"(?<![\w.-]){re.escape(place)}(?![\w.:=-])", stand_in, hidden.replace(stand_in, ""))
        hidden = self._redactor.text(hidden)
        for stand_in, place in self._places.items():
            hidden = hidden.replace(stand_in, place)
        return hidden


def _known_places() -> list[str]:
    """Return the directories of this installation, the longest first."""
    found = {sys.prefix, sys.base_prefix, source_directory(), os.environ.get("SPARK_HOME")}
    return sorted((each for each in found if each and len(Path(each).parts) > 1), key=len, reverse=True)


def _parts(redactor: Redactor, key: str, value: str) -> Iterator[str]:
    """Yield the whole value, what is quoted in it (as in a JAAS configuration), and passwords in addresses."""
    if redactor.is_secret(key):
        yield value
        yield value.strip()
        for double, single in _QUOTED.findall(value):
            yield double or single
        yield from value.split(":", 1)[1:]  # user:password
    for user_info in _USER_INFO.findall(value):
        yield user_info
        yield from user_info.split(":", 1)[1:]


def _found_by(word: str) -> str:
    """Return the pattern that finds it. A short secret counts only as a whole word."""
    escaped = re.escape(word)
    return rf"(?<!\w){escaped}(?!\w)" if len(word) < _SHORT else escaped


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
    yield _check_enabled(given)
    yield from _listeners(given, only)
    yield from _metrics(given.settings)


def _check_enabled(given: DriverConfiguration) -> CheckResult:
    if given.settings.enabled:
        return CheckResult.ok("enabled", f"{PREFIX}enabled is true")
    words = f"{PREFIX}enabled isn't true: headwater does nothing, unless a job calls it or is run by `headwater run`"
    return CheckResult.warning("enabled", words, f"{PREFIX}enabled=true")


def _listeners(given: DriverConfiguration, only: frozenset[str]) -> Iterator[CheckResult]:
    names = given.settings.listener_names
    for name in sorted(only - {*names}):
        yield CheckResult.error("listeners", no_such("listener", name, names), "name one that the configuration has")
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
