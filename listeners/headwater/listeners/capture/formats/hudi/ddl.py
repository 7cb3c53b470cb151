"""What Hudi's own DDL did to a catalog's tables: as Spark's does it, with the instants that it made beside.

Hudi puts commands of its own in the place of Spark's. Their arguments are the same under other names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from headwater.events import AlterTable, CreateTable, Event, TableName
from headwater.events.catalog import ModificationCause, TableModification
from headwater.events.changes import TableChange
from headwater.events.tables import Table
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture import catalog
from headwater.listeners.capture.catalog.named_tables import name_v1_table
from headwater.listeners.capture.catalog.occurrence import StatementContext
from headwater.listeners.capture.catalog.table_changes import parse_changes
from headwater.listeners.capture.catalog.table_modification import alter_events_by_name, table_after
from headwater.listeners.capture.commands import CatalogTranslator
from headwater.listeners.capture.context import SESSION_CATALOG, CaptureContext
from headwater.listeners.capture.formats.hudi.table_refs import place_path, without_internal_columns
from headwater.listeners.capture.formats.hudi.timelines import (
    produced_by,
    recorded_commits,
    timeline_facts,
)
from headwater.listeners.capture.formats.hudi.write_results import commits_to
from headwater.listeners.capture.formats.protocol import WriteTarget
from headwater.listeners.capture.formats.schema_diff import SchemaDiff, fields_of
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import Statement

_RENAMED_ARGUMENT: Final = "tableIdentifier"


def _as_spark_command(sparks: str, **arguments: str) -> CatalogTranslator:
    """Reported as Spark's own command is, whose arguments have these names here."""

    def translate(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
        read = catalog.COMMANDS[sparks].catalog
        assert read is not None  # noqa: S101 - it is one that modifies a catalog
        own = {name: node.args[here] for name, here in arguments.items() if here in node.args}
        for event in read(replace(node, args={**node.args, **own}), statement, context):
            yield _with_instant(event, statement)

    return translate


def _with_instant(event: Event, statement: Statement) -> Event:
    """With the instant that it made, where it made one, and without what Hudi keeps for itself."""
    if not isinstance(event, TableModification):
        return event
    update: dict[str, Any] = {}
    commits = recorded_commits(statement.facts)
    if commits and not isinstance(event, CreateTable):
        update |= produced_by(commits[-1], statement.facts)
    for name in ("table", "new_table"):
        table = getattr(event, name, None)
        if isinstance(table, Table):
            update[name] = table.model_copy(update={"columns": without_internal_columns(table.columns)})
    return event.model_copy(update=update) if update else event


create_table: Final = _as_spark_command("CreateDataSourceTableCommand")
create_table_like: Final = _as_spark_command("CreateTableLikeCommand", ifNotExists="ignoreIfExists")
add_columns: Final = _as_spark_command("AlterTableAddColumnsCommand", tableName="tableId")
change_column: Final = _as_spark_command("AlterTableChangeColumnCommand", tableName=_RENAMED_ARGUMENT)
rename_table: Final = _as_spark_command("AlterTableRenameCommand")
add_partitions: Final = _as_spark_command("AlterTableAddPartitionCommand", tableName=_RENAMED_ARGUMENT)
drop_partitions: Final = _as_spark_command(
    "AlterTableDropPartitionCommand", tableName=_RENAMED_ARGUMENT, specs="partitionSpecs"
)
drop_table: Final = _as_spark_command("DropTableCommand", tableName=_RENAMED_ARGUMENT)
truncate_table: Final = _as_spark_command("TruncateTableCommand", tableName=_RENAMED_ARGUMENT)
repair_table: Final = _as_spark_command("RepairTableCommand")


def alter_table(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """ALTER TABLE where Hudi evolves schemas on read: the changes that Spark asks a catalog for."""
    named = name_v1_table(node.args["table"], context)
    asked: list[TableChange] = list(parse_changes(node.args.get("changes", ()), statement.plan))
    new = table_after(named, statement)
    for event in alter_events_by_name(named, asked, new, StatementContext(statement, context)):
        yield _with_instant(event, statement)


def schema_changes(target: WriteTarget, statement: Statement, context: CaptureContext) -> tuple[AlterTable, ...]:
    """How a write changed the schema: that of its commit beside that of the commit before it."""
    changed = [change for change in timeline_facts(statement.facts).get("evolved", ()) if _is_of(change, target)]
    return tuple(_schema_changes_of(change, target, statement, context) for change in changed)


def _is_of(fields: Mapping[str, Any], target: WriteTarget) -> bool:
    return target.sink.dataset is None or place_path(fields["path"], target.hints["environment"]) == target.sink.dataset


def _schema_changes_of(
    fields: Mapping[str, Any], target: WriteTarget, statement: Statement, context: CaptureContext
) -> AlterTable:
    columns, new = columns_from_schema_json(fields["before"]), columns_from_schema_json(fields["after"])
    table = Table(
        columns=columns,
        partitioning=target.sink.partitioning,
        primary_key=target.sink.primary_key,
        location=fields["path"],
        provider="hudi",
    )
    commits = commits_to(target, statement.facts)
    return AlterTable(
        context=(target.catalog or context.session_catalog()).context,
        cause=ModificationCause.WRITE,
        identifier=target.sink.table or TableName(catalog=SESSION_CATALOG, database="hudi", table=fields["path"]),
        dataset=place_path(fields["path"], context.environment),
        format=target.sink.format,
        **(produced_by(commits[-1], statement.facts) if commits else {}),
        changes=tuple(SchemaDiff().of(fields_of(columns), fields_of(new))),
        table=table,
        new_table=table.model_copy(update={"columns": new}),
    )
