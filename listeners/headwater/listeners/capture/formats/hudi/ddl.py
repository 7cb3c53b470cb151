"""What Hudi's own DDL did to a catalog's tables: as Spark's does it, with the instants that it made beside.

Hudi puts commands of its own in the place of Spark's. Their arguments are the same under other names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from headwater.events import AlterTable, Cause, CreateTable, Event, TableChange, TableName
from headwater.events.catalog import TableModification
from headwater.events.tables import Table
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture import catalog
from headwater.listeners.capture.catalog.changes import changes_of
from headwater.listeners.capture.catalog.evidence import Occasion
from headwater.listeners.capture.catalog.modified import altered_since, table_after
from headwater.listeners.capture.catalog.places import first_kind
from headwater.listeners.capture.commands import TellCatalog
from headwater.listeners.capture.formats.hudi.places import placed, without_hudis
from headwater.listeners.capture.formats.hudi.timelines import before, looked_up, noted, timeline
from headwater.listeners.capture.formats.hudi.written import commits_to
from headwater.listeners.capture.formats.protocol import Target
from headwater.listeners.capture.formats.schemas import Differences, fields_of
from headwater.listeners.capture.plan.tree import Node
from headwater.listeners.capture.scene import SESSION_CATALOG, Scene
from headwater.listeners.capture.statements import Statement

_DISAGREES: Final = "tableIdentifier"


def _as(sparks: str, **arguments: str) -> TellCatalog:
    """Told as Spark's own command is, whose arguments have these names here."""

    def tell(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
        read = catalog.COMMANDS[sparks].catalog
        assert read is not None  # noqa: S101 - it is one that modifies a catalog
        own = {name: node.args[here] for name, here in arguments.items() if here in node.args}
        for event in read(replace(node, args={**node.args, **own}), statement, scene):
            yield _with_instant(event, statement)

    return tell


def _with_instant(event: Event, statement: Statement) -> Event:
    """With the instant that it made, where it made one, and without what Hudi keeps for itself."""
    if not isinstance(event, TableModification):
        return event
    update: dict[str, Any] = {}
    commits = noted(statement.facts)
    if commits and not isinstance(event, CreateTable):
        update["produced"] = commits[-1].number
        update["parent"] = before(commits[-1].number, timeline(statement.facts, commits[-1].path) or [])
    for name in ("table", "new_table"):
        table = getattr(event, name, None)
        if isinstance(table, Table):
            update[name] = table.model_copy(update={"columns": without_hudis(table.columns)})
    return event.model_copy(update=update) if update else event


created: Final = _as("CreateDataSourceTableCommand")
created_like: Final = _as("CreateTableLikeCommand", ifNotExists="ignoreIfExists")
columns_added: Final = _as("AlterTableAddColumnsCommand", tableName="tableId")
column_changed: Final = _as("AlterTableChangeColumnCommand", tableName=_DISAGREES)
renamed: Final = _as("AlterTableRenameCommand")
partitions_added: Final = _as("AlterTableAddPartitionCommand", tableName=_DISAGREES)
partitions_dropped: Final = _as("AlterTableDropPartitionCommand", tableName=_DISAGREES, specs="partitionSpecs")
dropped: Final = _as("DropTableCommand", tableName=_DISAGREES)
truncated: Final = _as("TruncateTableCommand", tableName=_DISAGREES)
repaired: Final = _as("RepairTableCommand")


def altered(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    """ALTER TABLE where Hudi evolves schemas on read: the changes that Spark asks a catalog for."""
    named = first_kind(node.args["table"], scene)
    asked: list[TableChange] = list(changes_of(node.args.get("changes", ()), statement.plan))
    new = table_after(named, statement)
    for event in altered_since(named, asked, new, Occasion(statement, scene)):
        yield _with_instant(event, statement)


def evolved(target: Target, statement: Statement, scene: Scene) -> tuple[AlterTable, ...]:
    """How a write changed the schema: that of its commit beside that of the commit before it."""
    told = [each for each in looked_up(statement.facts).get("evolved", ()) if _is_of(each, target)]
    return tuple(_evolved(each, target, statement, scene) for each in told)


def _is_of(told: Mapping[str, Any], target: Target) -> bool:
    return target.sink.dataset is None or placed(told["path"], target.hints["site"]) == target.sink.dataset


def _evolved(told: Mapping[str, Any], target: Target, statement: Statement, scene: Scene) -> AlterTable:
    columns, new = columns_from_schema_json(told["before"]), columns_from_schema_json(told["after"])
    table = Table(
        columns=columns,
        partitioning=target.sink.partitioning,
        primary_key=target.sink.primary_key,
        location=told["path"],
        provider="hudi",
    )
    commits = commits_to(target, statement.facts)
    line = timeline(statement.facts, told["path"]) or []
    return AlterTable(
        context=(target.catalog or scene.session_catalog()).context,
        cause=Cause.WRITE,
        identifier=target.sink.table or TableName(catalog=SESSION_CATALOG, database="hudi", table=told["path"]),
        dataset=placed(told["path"], scene.site),
        format=target.sink.format,
        produced=commits[-1].number if commits else None,
        parent=before(commits[-1].number, line) if commits else None,
        changes=tuple(Differences().of(fields_of(columns), fields_of(new))),
        table=table,
        new_table=table.model_copy(update={"columns": new}),
    )
