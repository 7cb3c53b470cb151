"""Every batch command of Spark and of the formats: recorded, ignored for a reason, or, where it isn't here, a Gap."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from headwater.listeners.capture import catalog
from headwater.listeners.capture.batch import spark_writes
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.formats import plugins
from headwater.listeners.capture.streaming import sinks


@cache
def all_commands() -> Mapping[str, CommandRule]:
    """By the class's simple name. Where two tell of one command, what each adds is put together."""
    found: dict[str, CommandRule] = {}
    for commands in (
        spark_writes.COMMANDS,
        sinks.COMMANDS,
        catalog.COMMANDS,
        *(plugin.commands for plugin in plugins()),
    ):
        for name, command in commands.items():
            found[name] = _merge_rules(found[name], command) if name in found else command
    return MappingProxyType(found)


def ignored_commands() -> list[str]:
    """Commands that needn't be read at all."""
    return [name for name, command in all_commands().items() if command.ignored is not None]


def _merge_rules(one: CommandRule, other: CommandRule) -> CommandRule:
    if one.ignored or other.ignored:
        return other if one.ignored else one
    catalog = other if other.catalog is not None else one
    return CommandRule(other.write or one.write, catalog.catalog, proven=catalog.proven)
