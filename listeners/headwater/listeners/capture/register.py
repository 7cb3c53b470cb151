"""Every batch command of Spark and of the formats: told, ignored for a reason, or, where it isn't here, a Gap."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Final

from headwater.listeners.capture import formats
from headwater.listeners.capture.batch import spark
from headwater.listeners.capture.commands import Command
from headwater.listeners.capture.streaming import sinks

_CATALOG: Final = "headwater.listeners.capture.catalog"


@cache
def register() -> Mapping[str, Command]:
    """By the class's simple name. Where two tell of one command, what each adds is put together."""
    found: dict[str, Command] = {}
    for each in (spark.COMMANDS, sinks.COMMANDS, _of_catalogs(), *formats.commands().values()):
        for name, command in each.items():
            found[name] = _merged(found[name], command) if name in found else command
    return MappingProxyType(found)


def ignored() -> list[str]:
    """Commands that needn't be read at all."""
    return [name for name, command in register().items() if command.ignored is not None]


def _of_catalogs() -> Mapping[str, Command]:
    """Imported when first asked: it names types of the modules that ask."""
    commands: Mapping[str, Command] = import_module(_CATALOG).COMMANDS
    return commands


def _merged(one: Command, other: Command) -> Command:
    if one.ignored or other.ignored:
        return other if one.ignored else one
    catalog = other if other.catalog is not None else one
    return Command(other.write or one.write, catalog.catalog, proven=catalog.proven)
