"""Modifications of catalogs: what the DDL of Spark's own commands did to databases, tables, views and partitions.

One module for each subject; all commands of Spark that change a catalog or nothing at all are in `COMMANDS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from headwater.events import Event
from headwater.listeners.capture.catalog import (
    alter_table,
    create_table,
    databases,
    drop_table,
    ignored_commands,
    partitions,
    views,
)
from headwater.listeners.capture.catalog.ignored_commands import GAPS
from headwater.listeners.capture.catalog.lineage_options import CatalogDeclarations, LineageSwitches, switches_of
from headwater.listeners.capture.commands import CatalogTranslator, CommandRule
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import Statement

__all__ = ["COMMANDS", "GAPS", "CatalogDeclarations", "LineageSwitches", "switches_of"]


def _table_or_view(of_table: CatalogTranslator, of_view: CatalogTranslator) -> CommandRule:
    """A command that is a table's or, where it says so, a view's."""

    def translate(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
        yield from (of_view if node.args.get("isView") else of_table)(node, statement, context)

    return CommandRule(catalog=translate)


_TABLES: Final[Mapping[str, CommandRule]] = {
    **create_table.COMMANDS,
    **alter_table.COMMANDS,
    **partitions.COMMANDS,
    **drop_table.COMMANDS,
}
COMMANDS: Final[Mapping[str, CommandRule]] = {
    **_TABLES,
    **{
        name: _table_or_view(_TABLES[name].catalog or command.catalog, command.catalog)
        for name, command in views.VIEW_VARIANTS.items()
        if command.catalog is not None
    },
    **views.COMMANDS,
    **databases.COMMANDS,
    **ignored_commands.COMMANDS,
}
