"""Modifications of catalogs: what the DDL of Spark's own commands did to databases, tables, views and partitions.

One module for each subject; all commands of Spark that change a catalog or nothing at all are in `COMMANDS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from headwater.events import Event
from headwater.listeners.capture.catalog import altered, databases, gone, ignored, made, partitions, views
from headwater.listeners.capture.catalog.ignored import GAPS
from headwater.listeners.capture.catalog.options import Declarations, Omitted, omits
from headwater.listeners.capture.commands import Command, TellCatalog
from headwater.listeners.capture.plan.tree import Node
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Statement

__all__ = ["COMMANDS", "GAPS", "Declarations", "Omitted", "omits"]


def _either(of_table: TellCatalog, of_view: TellCatalog) -> Command:
    """A command that is a table's or, where it says so, a view's."""

    def tell(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
        yield from (of_view if node.args.get("isView") else of_table)(node, statement, scene)

    return Command(catalog=tell)


_TABLES: Final[Mapping[str, Command]] = {
    **made.COMMANDS,
    **altered.COMMANDS,
    **partitions.COMMANDS,
    **gone.COMMANDS,
}
COMMANDS: Final[Mapping[str, Command]] = {
    **_TABLES,
    **{
        name: _either(_TABLES[name].catalog or command.catalog, command.catalog)
        for name, command in views.OF_VIEWS.items()
        if command.catalog is not None
    },
    **views.COMMANDS,
    **databases.COMMANDS,
    **ignored.COMMANDS,
}
