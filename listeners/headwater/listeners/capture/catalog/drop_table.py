"""Tables that are dropped or get another name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from headwater.events import AlterTable, DropTable, Event, Table
from headwater.events.changes import RenameTable
from headwater.listeners.capture.catalog.descriptions import (
    describe_resolved_table,
    describe_v2_table,
    format_of_table,
)
from headwater.listeners.capture.catalog.named_tables import NamedTable, name_v1_table, name_v2_table
from headwater.listeners.capture.catalog.occurrence import Occurrence, StatementContext, session_facts, was_event_posted
from headwater.listeners.capture.catalog.table_evidence import TableDescription
from headwater.listeners.capture.catalog.table_modification import table_after
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext, KnownTable
from headwater.listeners.capture.formats.external_rows import dataset_of_table
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import Statement


def _drop_table(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """DropTable, of all catalogs."""
    named = name_v2_table(node, statement.plan, context)
    if named is not None:
        yield from drop_events(named, node, statement, context)


def _drop_table_by_name(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """DropTableCommand."""
    return drop_events(name_v1_table(node.args["tableName"], context), node, statement, context)


def drop_events(
    named: NamedTable, node: PlanNode, statement: Statement, context: CaptureContext
) -> Iterator[DropTable]:
    known = context.find_known(named.name)
    if_exists = bool(node.args.get("ifExists"))
    dropped = _find_drop(named, known, statement) if if_exists else Occurrence.HAPPENED
    if dropped is Occurrence.NOTHING:
        return  # what is known stays: who dropped it may be reported later
    table = known.table if known is not None and isinstance(known.table, Table) else None
    details: dict[str, Any] = {} if table is None else {"format": format_of_table(table.provider)}
    yield DropTable(
        context=named.catalog.context,
        effect=dropped.effect,
        sql=statement.sql,
        identifier=named.name,
        dataset=(known.dataset if known else None) or dataset_of_table(named, table, context),
        generation=known.generation if known else None,
        table=table,
        ignore_if_not_exists=if_exists,
        purge=bool(node.args.get("purge")),
        **details,
    )
    if dropped is Occurrence.HAPPENED:
        context.forget(named.name)


def _find_drop(named: NamedTable, known: KnownTable | None, statement: Statement) -> Occurrence:
    """What this driver knew to be there was dropped; of anything else only the catalog's own event tells."""
    was_posted = was_event_posted(statement, named.catalog, "DropTableEvent", named.name.database, named.name.table)
    return Occurrence.of(True if was_posted is None and known is not None else was_posted)


def _rename_v1_table(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """AlterTableRenameCommand. A managed table moves with its name."""
    named = name_v1_table(node.args["oldName"], context)
    new = name_v1_table(node.args["newName"], context, named.name.database)
    known = context.find_known(named.name)
    old = TableDescription(known.table) if known is not None and isinstance(known.table, Table) else None
    yield from _rename_event(named, new, old, table_after(new, statement), StatementContext(statement, context))


def _rename_v2_table(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    named = name_v2_table(node, statement.plan, context)
    if named is None or named.resolved is None or "table" not in named.resolved.args:
        return
    new = named.renamed(node.args["newName"])
    old = describe_resolved_table(named.resolved.args["table"], named.resolved.output, statement.plan)
    found = next((fields for fields in session_facts(statement).get("tables", ()) if "class" in fields), None)
    after = table_after(new, statement) if found is None else describe_v2_table(found, old.table.columns)
    yield from _rename_event(named, new, old, after, StatementContext(statement, context))


def _rename_event(
    named: NamedTable,
    new: NamedTable,
    old: TableDescription | None,
    after: TableDescription | None,
    on: StatementContext,
) -> Iterator[Event]:
    known = on.context.forget(named.name)
    before = old.table if old else None
    location = after.table.location if after else None
    was = (known.dataset if known else None) or dataset_of_table(named, before, on.context)
    dataset = dataset_of_table(new, after.table if after else None, on.context)
    generation = (old.generation if old else None) or (known.generation if known else None)
    table = before.model_copy(update={"location": location or before.location}) if before else None
    description = table or (after.table if after else None)
    described = after or old
    details: dict[str, Any] = {} if described is None else {"format": format_of_table(described.table.provider)}
    yield AlterTable(
        context=named.catalog.context,
        sql=on.statement.sql,
        identifier=named.name,
        dataset=was,
        generation=generation,
        changes=(RenameTable(table=new.name, dataset=dataset if dataset != was else None),),
        table=before,
        new_table=description,
        **details,
    )
    if description is not None:
        on.context.remember(new.name, KnownTable(description, generation, dataset or was))


COMMANDS: Final[Mapping[str, CommandRule]] = {
    "DropTable": CommandRule(catalog=_drop_table),
    "DropTableCommand": CommandRule(catalog=_drop_table_by_name),
    "RenameTable": CommandRule(catalog=_rename_v2_table),
    "AlterTableRenameCommand": CommandRule(catalog=_rename_v1_table),
}
