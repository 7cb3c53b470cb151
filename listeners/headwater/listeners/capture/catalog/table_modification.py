"""AlterTable events: the old table, the changes, and what it is after them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from headwater.events import AlterTable, Event, Table
from headwater.events.apply import ChangeError, apply
from headwater.events.catalog import ModificationEffect
from headwater.events.changes import SetLocation, TableChange
from headwater.listeners.capture.catalog.descriptions import describe_catalog_table
from headwater.listeners.capture.catalog.named_tables import NamedTable, dataset_at
from headwater.listeners.capture.catalog.occurrence import StatementContext, session_facts
from headwater.listeners.capture.catalog.table_evidence import TableDescription, TableEvidence
from headwater.listeners.capture.context import CaptureContext, KnownTable
from headwater.listeners.capture.formats.external_rows import dataset_of_table
from headwater.listeners.capture.statements import Statement

_CASE_SENSITIVE: Final = "spark.sql.caseSensitive"


def alter_events(
    named: NamedTable,
    changes: Iterable[TableChange],
    old: TableDescription,
    account: TableEvidence,
    on: StatementContext,
    *,
    effect: ModificationEffect = ModificationEffect.APPLIED,
) -> Iterator[Event]:
    """Of a table as it was analysed: the new one is the old one with the changes."""
    placed = tuple(_with_dataset(change, named, on.context) for change in changes)
    new = _apply(placed, old.table, on.statement) or (account.after.table if account.after else None)
    yield AlterTable(
        context=named.catalog.context,
        effect=effect,
        sql=on.statement.sql,
        identifier=named.name,
        dataset=dataset_of_table(named, old.table, on.context),
        generation=old.generation,
        format=old.format,
        schema_id=account.schema_id,
        produced=account.produced,
        parent=account.parent,
        changes=placed,
        table=old.table,
        new_table=new,
    )
    if effect is ModificationEffect.APPLIED:
        remember(named, new, old.generation, on.context)


def alter_events_by_name(
    named: NamedTable,
    changes: Iterable[TableChange],
    new: TableDescription | None,
    on: StatementContext,
    *,
    effect: ModificationEffect = ModificationEffect.APPLIED,
) -> Iterator[Event]:
    """Of a table in Spark's own catalog that the plan only names: the old one is what this driver last knew, the new
    one was read afterwards."""
    known = on.context.find_known(named.name)
    old = known.table if known is not None and isinstance(known.table, Table) else None
    requested = tuple(changes)
    if not requested:
        return
    after = new.table if new is not None else _apply(requested, old, on.statement)
    placed = tuple(_with_dataset(_as_stored(change, after), named, on.context) for change in requested)
    before = old if old is not None else _unless_moved(placed, after)
    details: dict[str, Any] = {} if new is None else {"format": new.format}
    yield AlterTable(
        context=named.catalog.context,
        effect=effect,
        sql=on.statement.sql,
        identifier=named.name,
        dataset=dataset_of_table(named, before, on.context) or (known.dataset if known else None),
        generation=known.generation if known else None,
        changes=placed,
        table=old,
        new_table=after,
        **details,
    )
    if effect is ModificationEffect.APPLIED:
        remember(named, after, known.generation if known else None, on.context)


def table_after(named: NamedTable, statement: Statement) -> TableDescription | None:
    """The table when the statement had ended; one that was made since then is another one."""
    for fields in session_facts(statement).get("tables", ()):
        if "database" not in fields:
            continue
        if (fields["database"].lower(), fields["name"].lower()) == (
            named.name.database.lower(),
            named.name.table.lower(),
        ):
            found = describe_catalog_table(fields)
            return None if found.created is not None and found.created > statement.ended else found
    return None


def remember(named: NamedTable, table: Table | None, generation: Any, context: CaptureContext) -> None:
    """What this driver knows of the table from now on; nothing, where that couldn't be read."""
    if table is None:
        context.forget(named.name)
    else:
        context.remember(named.name, KnownTable(table, generation, dataset_of_table(named, table, context)))


def _apply(changes: Iterable[TableChange], old: Table | None, statement: Statement) -> Table | None:
    if old is None:
        return None
    try:
        return apply(changes, old, case_sensitive=statement.confs.get(_CASE_SENSITIVE, "").lower() == "true")
    except ChangeError:
        return None


def _with_dataset(change: TableChange, named: NamedTable, context: CaptureContext) -> TableChange:
    """A location with the dataset that the table is from now on."""
    if not isinstance(change, SetLocation):
        return change
    return change.model_copy(update={"dataset": dataset_at(named, change.location, context)})


def _as_stored(change: TableChange, after: Table | None) -> TableChange:
    """A location as the catalog keeps it."""
    if isinstance(change, SetLocation) and after is not None and after.location is not None:
        return change.model_copy(update={"location": after.location})
    return change


def _unless_moved(changes: Iterable[TableChange], after: Table | None) -> Table | None:
    """The table, if it is where it was before."""
    return None if any(isinstance(change, SetLocation) for change in changes) else after
