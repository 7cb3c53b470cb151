"""Finding what others plug in: by the name of an entry point, or as `package.module:Name`."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from headwater.config import unknown
from headwater.errors import PluginError


def load(group: str, name: str) -> Any:
    """What this name stands for in that group of entry points. A PluginError says what is wrong with it."""
    if ":" in name:
        return _by_path(name)
    found = _entry_points(group).get(name)
    if found is None:
        raise PluginError(unknown(f"plug-in of {group} called", name, _entry_points(group)))
    try:
        return found.load()
    except Exception as e:  # a plug-in's import can fail in any way
        raise PluginError(f"{name} of {group} is {found.value}, and that can't be imported: {_words(e)}") from e


def names(group: str) -> tuple[str, ...]:
    """The names that are installed in a group."""
    return tuple(sorted(_entry_points(group)))


def _entry_points(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def _by_path(path: str) -> Any:
    module_name, _, attribute = path.partition(":")
    try:
        found: Any = import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as e:
        raise PluginError(f"{path}: there is no module {e.name}: is it installed where this runs?") from e
    except AttributeError as e:
        raise PluginError(f"{path}: {unknown('name in it', attribute, _public(module_name))}") from e
    except Exception as e:  # a plug-in's import can fail in any way
        raise PluginError(f"{path} can't be imported: {_words(e)}") from e
    return found


def _public(module_name: str) -> list[str]:
    return [name for name in vars(import_module(module_name)) if not name.startswith("_")]


def _words(e: Exception) -> str:
    return f"{type(e).__name__}: {e}"
