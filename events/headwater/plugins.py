"""Plug-ins: found by the name of an entry point or as `package.module:Name`, created, and checked.

headwater's own plug-ins are entry points too. Where its metadata isn't beside it, as in a zip that holds the package
alone, or is older than a group, as in an editable install, they are found by the table here.
"""

from __future__ import annotations

import inspect
import json
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, EntryPoints, PackageNotFoundError, distribution, distributions
from types import ModuleType
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from headwater.config import unknown
from headwater.errors import PluginError, advise_import

OWN_PLUGINS: Final[Mapping[str, Mapping[str, str]]] = {
    "headwater.listeners": {
        "console": "headwater.publishers.console:ConsoleFactory",
        "jdbc": "headwater.lineage.listener:JdbcFactory",
        "kafka": "headwater.publishers.kafka:KafkaFactory",
        "log": "headwater.publishers.log:LogFactory",
    },
    "headwater.formats": {
        "delta": "headwater.listeners.capture.formats.delta:PLUGIN",
        "files": "headwater.listeners.capture.formats.files:PLUGIN",
        "hudi": "headwater.listeners.capture.formats.hudi:PLUGIN",
        "iceberg": "headwater.listeners.capture.formats.iceberg:PLUGIN",
        "jdbc": "headwater.listeners.capture.formats.jdbc:PLUGIN",
        "kafka": "headwater.listeners.capture.formats.kafka:PLUGIN",
        "paimon": "headwater.listeners.capture.formats.paimon:PLUGIN",
    },
    "headwater.forwarders": {
        "alerts": "headwater.forwarders.alerts:AlertForwarder",
        "atlas": "headwater.forwarders.atlas:AtlasForwarder",
        "datahub": "headwater.forwarders.datahub:DataHubForwarder",
        "openlineage": "headwater.forwarders.openlineage:OpenLineageForwarder",
        "webhook": "headwater.forwarders.webhook:WebhookForwarder",
    },
    "headwater.lineage_meta": {
        "jdbc": "headwater.lineage.meta:JdbcLineageMetaFactory",
        "memory": "headwater.lineage.meta:MemoryLineageMetaFactory",
    },
    "headwater.version_finders": {
        "lineage": "headwater.versions.finder:LineageFinderFactory",
    },
    "headwater.branch_formats": {
        "delta": "headwater.versions.branches.delta:DeltaBranches",
        "iceberg": "headwater.versions.branches.iceberg:IcebergBranches",
        "paimon": "headwater.versions.branches.paimon:PaimonBranches",
    },
}
"""The entry points of this distribution, by group: the same as in its metadata."""
_OWN: Final = "headwater"


def own_version() -> str | None:
    """Return the version of headwater, or None where its metadata isn't beside it."""
    return next((each.version for each in distributions(name=_OWN, path=list(_python_path()))), None)


def extra_command(extra: str) -> str:
    """Return the command that installs an extra: from where headwater itself came, since it may be on no index."""
    wanted = f"{_OWN}[{extra}]"
    if (directory := source_directory()) is not None:
        wanted = f"{directory}[{extra}]"
    elif url := _source().get("url"):
        kind = _source().get("vcs_info", {}).get("vcs")
        wanted = f"{wanted} @ {f'{kind}+' if kind else ''}{url}"
    return f"{shlex.quote(sys.executable)} -m pip install {shlex.quote(wanted)}"


def source_directory() -> str | None:
    """Return the directory or file that headwater was installed from, if it came from a disk."""
    place = urlsplit(_source().get("url", ""))
    return unquote(place.path) if place.scheme == "file" and "vcs_info" not in _source() else None


def _source() -> dict[str, Any]:
    """What pip wrote down of where headwater came from, if that was no index (direct_url.json of PyPA's
    specifications)."""
    with suppress(PackageNotFoundError, ValueError, TypeError):
        found = json.loads(distribution(_OWN).read_text("direct_url.json") or "{}")
        return found if isinstance(found, dict) else {}
    return {}


def load(group: str, name: str) -> Any:
    """What this name stands for in that group of entry points. A PluginError says what is wrong with it."""
    if ":" in name:
        return _by_path(name)
    return _load_point(group, name, _points(group))


def load_all(group: str) -> dict[str, Any]:
    """What each name of a group stands for, or the PluginError that says what is wrong with it."""
    points = _points(group)
    return {name: _load_or_error(group, name, points) for name in sorted({point.name for point in points})}


def _load_or_error(group: str, name: str, installed: list[EntryPoint]) -> Any:
    try:
        return _load_point(group, name, installed)
    except PluginError as e:
        return e


def _load_point(group: str, name: str, installed: list[EntryPoint]) -> Any:
    points = [point for point in installed if point.name == name]
    if not points:
        raise PluginError(unknown(f"plug-in of {group} called", name, sorted({point.name for point in installed})))
    if len(points) > 1:
        raise PluginError(_ambiguous(group, name, points))
    try:
        return points[0].load()
    except Exception as e:  # a plug-in's import can fail in any way
        raise PluginError(f"{name} of {group} is {points[0].value}, and that can't be imported: {_words(e)}") from e


def create(group: str, name: str) -> Any:
    """Load a plug-in; a class is called without arguments. A PluginError says why there is none."""
    loaded = load(group, name)
    if not isinstance(loaded, type):
        return loaded
    try:
        return loaded()
    except Exception as e:  # a plug-in can fail in any way
        raise PluginError(f"{name} can't be created without arguments: {_words(e)}") from e


def check_methods(plugin: object, expected: Mapping[str, str]) -> None:
    """Raise a PluginError if a method can't be called with its one argument, or is asynchronous.

    `expected` has the argument of each method. Methods that the plug-in doesn't have are left to the caller.
    """
    for name, argument in expected.items():
        if not hasattr(plugin, name):
            continue
        method = getattr(plugin, name)
        where = f"{type(plugin).__name__}.{name}"
        advice = f"write def {name}(self, {argument})"
        if not callable(method):
            raise PluginError(f"{where} is no method: {advice}")
        if inspect.iscoroutinefunction(method):
            raise PluginError(f"{where} is asynchronous, and nothing awaits it: {advice}, without async")
        try:
            signature = inspect.signature(method)
        except ValueError:  # some that are written in C have none
            continue
        try:
            signature.bind(None)
        except TypeError:
            raise PluginError(f"{where}{signature} can't be called as {name}({argument}): {advice}") from None


def names(group: str) -> tuple[str, ...]:
    """The names that are installed in a group."""
    return tuple(sorted({point.name for point in _points(group)}))


def _points(group: str) -> list[EntryPoint]:
    points = list(_installed_points(_python_path()).select(group=group))
    if not any(point.dist is not None and point.dist.name == _OWN for point in points):
        points += [EntryPoint(name, value, group) for name, value in OWN_PLUGINS.get(group, {}).items()]
    return points


def _python_path() -> tuple[str, ...]:
    """Where Python's distributions are. Spark puts an application's jars on this path too: to look for one in each of
    Iceberg's 25,000 classes takes Python half a second."""
    return tuple(each for each in sys.path if not each.endswith(".jar"))


@cache
def _installed_points(path: tuple[str, ...]) -> EntryPoints:
    """All entry points. The metadata of everything that is installed is read for them, and a driver's start asks three
    times. Of a distribution that is there twice, the first counts."""
    found: dict[str, Distribution] = {}
    for each in distributions(path=list(path)):
        found.setdefault(getattr(each, "_normalized_name", None) or each.name, each)  # a name costs a file that is read
    return EntryPoints(point for each in found.values() for point in each.entry_points)


def _ambiguous(group: str, name: str, points: list[EntryPoint]) -> str:
    """Whichever came first on the path would win, and that is nobody's decision."""
    brought = " and ".join(sorted(f"{_distribution(point)} ({point.value})" for point in points))
    return (
        f"{name} of {group} is brought by {brought}: uninstall all but one, or name the one that is meant by its path, "
        f"{points[0].value}"
    )


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown distribution"


def _by_path(path: str) -> Any:
    module_name, _, attribute = path.partition(":")
    found: Any = _import_module(path, module_name)
    for part in attribute.split("."):
        known = [name for name in dir(found) if not name.startswith("_")]
        try:
            found = getattr(found, part)
        except AttributeError as e:
            raise PluginError(f"{path}: {unknown('name in it', part, known)}") from e
    return found


def _import_module(path: str, module_name: str) -> ModuleType:
    try:
        return import_module(module_name)
    except ModuleNotFoundError as e:
        raise PluginError(f"{path}: there is no module {e.name}: is it installed where this runs?") from e
    except Exception as e:  # a plug-in's import can fail in any way
        raise PluginError(f"{path} can't be imported: {_words(e)}") from e


def _words(e: Exception) -> str:
    words = f"{type(e).__name__}: {e}"
    advice = advise_import(e) if isinstance(e, ImportError) else ""
    return f"{words}; {advice}" if advice else words
