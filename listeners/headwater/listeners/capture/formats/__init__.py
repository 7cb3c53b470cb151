"""The table formats that are installed, each a plug-in of its own: siblings with one anatomy."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from headwater import plugins as entry_points
from headwater.errors import PluginError
from headwater.events.identity import Catalog, Environment, Unknown
from headwater.events.identity import catalog_of as identify_catalog
from headwater.listeners.capture.formats.plugin import FormatPlugin, JavaPart
from headwater.listeners.capture.formats.protocol import TableFormat
from headwater.listeners.capture.plan.columns.analysis import RowChangesReader

__all__ = [
    "CORE",
    "GROUP",
    "BrokenFormat",
    "FormatPlugin",
    "InstalledFormats",
    "installed",
    "java_parts",
    "plugins",
    "row_changes_readers",
]

_LOG = logging.getLogger(__name__)
GROUP: Final = "headwater.formats"
_SESSION: Final = "org.apache.spark.sql.SparkSession"
CORE: Final = (
    JavaPart(
        probe=_SESSION, folder=resources.files("headwater.listeners.capture") / "java", extractor="SessionExtractor"
    ),
    JavaPart(probe=_SESSION, hooks=("CatalogHook",), always_hooked=True),
)
"""What of the Java side is no format's."""


@dataclass(frozen=True)
class BrokenFormat:
    """A plug-in that can't be used."""

    name: str
    why: str


@dataclass(frozen=True)
class InstalledFormats:
    plugins: tuple[FormatPlugin, ...]
    """In the order they are asked."""
    broken: tuple[BrokenFormat, ...] = ()

    def owner_of(self, class_name: str) -> FormatPlugin | None:
        """The format whose library has this class."""
        return next((plugin for plugin in self.plugins if plugin.owns(class_name)), None)

    def of_provider(self, provider: str | None) -> FormatPlugin | None:
        """The format of tables that are made USING this."""
        word = (provider or "").lower()
        return next((plugin for plugin in self.plugins if word in plugin.providers), None)

    def catalog_of(
        self, name: str, class_name: str | None, options: Mapping[str, str], environment: Environment
    ) -> Catalog | Unknown:
        """What a catalog points at, whichever format's it is."""
        readers = (
            plugin.catalogs[class_name] for plugin in self.plugins if class_name and class_name in plugin.catalogs
        )
        return identify_catalog(name, class_name, options, environment, next(readers, None))

    def readers(self) -> Mapping[str, TableFormat]:
        """What implements each format, by its name."""
        return {plugin.name: plugin.reader for plugin in self.plugins}


@cache
def installed() -> InstalledFormats:
    """Loaded when first asked: plug-ins name types of the modules that ask. One that is broken is left out."""
    loaded = [_check(name, found) for name, found in entry_points.load_all(GROUP).items()]
    sound = sorted(
        (found for found in loaded if isinstance(found, FormatPlugin)), key=lambda plugin: (plugin.order, plugin.name)
    )
    claimed = dict.fromkeys(CORE[0].sources(), "headwater itself")
    checked = [_claim_sources(plugin, claimed) for plugin in sound]
    broken = [found for found in (*loaded, *checked) if isinstance(found, BrokenFormat)]
    for one in broken:
        _LOG.error("The format %s is left out: %s", one.name, one.why)
    return InstalledFormats(tuple(plugin for plugin in checked if isinstance(plugin, FormatPlugin)), tuple(broken))


def plugins() -> tuple[FormatPlugin, ...]:
    """In the order they are asked; whatever is a file of no format is asked last."""
    return installed().plugins


def java_parts() -> tuple[JavaPart, ...]:
    return (*CORE, *(plugin.java for plugin in plugins() if plugin.java is not None))


def row_changes_readers() -> Mapping[str, RowChangesReader]:
    """What reads the formats' own commands that change rows one by one, by the simple names of their classes."""
    return {name: reader for plugin in reversed(plugins()) for name, reader in plugin.row_changes.items()}


def _check(name: str, found: Any) -> FormatPlugin | BrokenFormat:
    if isinstance(found, PluginError):
        return BrokenFormat(name, str(found))
    if not isinstance(found, FormatPlugin):
        return BrokenFormat(name, f"it is a {type(found).__name__}: let the entry point of {GROUP} name a FormatPlugin")
    if not (found.packages or found.is_last):
        return BrokenFormat(name, "it has no packages: name what its library's classes begin with")
    if found.name != name:
        return BrokenFormat(name, f"it calls itself {found.name}: give the entry point of {GROUP} the format's name")
    return found


def _claim_sources(plugin: FormatPlugin, claimed: dict[str, str]) -> FormatPlugin | BrokenFormat:
    """All sources are of one Java package, where a class's name can be taken once."""
    try:
        names = [] if plugin.java is None else list(plugin.java.sources())
    except Exception as e:  # noqa: BLE001 - whatever a plug-in's files raise
        return BrokenFormat(plugin.name, f"its Java sources can't be read: {type(e).__name__}: {e}")
    for name in names:
        if name in claimed:
            return BrokenFormat(plugin.name, f"{name} is brought by {claimed[name]} too: give the class another name")
    claimed.update(dict.fromkeys(names, plugin.name))
    return plugin
