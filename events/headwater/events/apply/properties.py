"""Changes of a table's properties, comment and owner."""

from __future__ import annotations

from typing import Final

from headwater.events.apply.names import Names
from headwater.events.base import StringMap
from headwater.events.changes import RemoveProperty, SetComment, SetLocation, SetProperty
from headwater.events.tables import Table

RESERVED: Final = frozenset({"comment", "location", "provider", "owner"})
"""Spark's TableCatalog keeps these among the properties; here they have places of their own."""


def set_property(table: Table, change: SetProperty, _names: Names) -> Table:
    if change.key in RESERVED:
        return table.model_copy(update={change.key: change.value})
    return table.model_copy(update={"properties": StringMap({**table.properties, change.key: change.value})})


def remove_property(table: Table, change: RemoveProperty, _names: Names) -> Table:
    """Removing what isn't there changes nothing, as in Spark."""
    if change.key in RESERVED:
        return table.model_copy(update={change.key: None})
    rest = {key: value for key, value in table.properties.items() if key != change.key}
    return table.model_copy(update={"properties": StringMap(rest)})


def set_comment(table: Table, change: SetComment, _names: Names) -> Table:
    return table.model_copy(update={"comment": change.comment})


def set_location(table: Table, change: SetLocation, _names: Names) -> Table:
    return table.model_copy(update={"location": change.location})


def no_change(table: Table, _change: object, _names: Names) -> Table:
    """Neither a table's name nor the values of its partitions are in its description, nor what has no word."""
    return table
