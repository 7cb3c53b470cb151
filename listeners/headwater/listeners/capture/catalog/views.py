"""Views: what they read, and which of its columns become which of theirs. Temporary ones are the session's business."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from headwater.events import AlterView, CreateView, DropView, Event, Format, Gap
from headwater.events.base import StringMap
from headwater.events.catalog import ModificationEffect
from headwater.events.health import GapReason
from headwater.events.identity import Unknown
from headwater.events.tables import View
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.catalog.drop_table import drop_events
from headwater.listeners.capture.catalog.named_tables import (
    NamedTable,
    dataset_of_view,
    is_temporary,
    name_v1_table,
    name_v2_table,
)
from headwater.listeners.capture.catalog.occurrence import Occurrence, is_during, session_facts, was_event_posted
from headwater.listeners.capture.catalog.view_lineage import lineage_of_view
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext, KnownTable
from headwater.listeners.capture.formats.relations import columns_of
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import Statement

_SPARK_VIEW_PREFIX: Final = "view."
"""Properties in which Spark keeps how a view is to be read: the names of its columns, the session's settings."""


def _create_view(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    fields: Mapping[str, Any] = node.args["name"]
    query = node.plan_of("plan")
    if "Persisted" not in str(node.args.get("viewType")) or query is None:
        return
    named = name_v1_table(fields, context)
    if_not_exists = bool(node.args.get("allowExisting"))
    made = _find_creation(named, statement) if if_not_exists else Occurrence.HAPPENED
    if made is Occurrence.NOTHING:
        return
    view = view_of(named, node, query, statement, context)
    known = context.find_known(named.name)
    yield CreateView(
        context=named.catalog.context,
        effect=made.effect,
        sql=statement.sql,
        identifier=named.name,
        dataset=dataset_of_view(named, context),
        format=Format.VIEW,
        view=view,
        ignore_if_exists=if_not_exists,
        replaced=bool(node.args.get("replace"))
        and (known is not None or _effect_of(named, "DropTableEvent", statement)),
    )
    if made is Occurrence.HAPPENED:
        context.remember(named.name, KnownTable(view))


def gaps_of_view(modification: Event, context: CaptureContext) -> Iterator[Gap]:
    """Yield what says that no answer has a view: its catalog points nowhere, so its name isn't one view's alone."""
    if not isinstance(modification, CreateView | AlterView):
        return
    names = {modification.identifier: modification.dataset}
    if isinstance(modification, AlterView) and modification.renamed_to is not None:
        names = {modification.renamed_to: modification.renamed_dataset}
    catalog = context.catalog_called(modification.context.name)
    pointed = None if catalog is None else catalog.catalog
    why = pointed.reason if isinstance(pointed, Unknown) else "its name in the catalog is incomplete"
    for name, dataset in names.items():
        if dataset is None:
            yield Gap(reason=GapReason.NOT_SUPPORTED, detail=f"no answer has the view {name}: {why}")


def _find_creation(named: NamedTable, statement: Statement) -> Occurrence:
    was_posted = was_event_posted(statement, named.catalog, "CreateTableEvent", named.name.database, named.name.table)
    after = _view_after(named, statement)
    if was_posted is None and after is not None:
        return Occurrence.of(is_during(statement, after.get("created")))
    return Occurrence.of(was_posted)


def _effect_of(named: NamedTable, event: str, statement: Statement) -> bool:
    return was_event_posted(statement, named.catalog, event, named.name.database, named.name.table) is True


def view_of(named: NamedTable, node: PlanNode, query: int, statement: Statement, context: CaptureContext) -> View:
    """Its text and its lineage by the command, its columns as the catalog has them."""
    plan = statement.plan
    after = _view_after(named, statement)
    specified = [(column["_1"], column.get("_2")) for column in node.args.get("userSpecifiedColumns", ())]
    columns = columns_of(plan, plan.nodes[query].output)
    if specified:
        columns = tuple(
            c.model_copy(update={"name": n, "comment": text or c.comment})
            for c, (n, text) in zip(columns, specified, strict=True)
        )
    if after is not None and "schemaText" in after:
        kept = columns_from_schema_json(after["schemaText"])
        columns = kept if [c.name for c in kept] == [c.name for c in columns] else columns
    sources, edges = lineage_of_view(plan, query, [column.name for column in columns], context)
    return View(
        columns=columns,
        sql=node.args.get("originalText"),
        sources=sources,
        lineage=edges,
        properties=StringMap(node.args.get("properties") or {}),
        comment=node.args.get("comment"),
        owner=(after or {}).get("owner") or None,
    )


def _view_after(named: NamedTable, statement: Statement) -> Mapping[str, Any] | None:
    """The view as it was kept when the statement had ended."""
    for fields in session_facts(statement).get("tables", ()):
        key = ((fields.get("database") or "").lower(), str(fields.get("name", "")).lower())
        if key == (named.name.database.lower(), named.name.table.lower()) and fields.get("type") == "VIEW":
            return dict(fields)
    return None


def _view_after_change(named: NamedTable, statement: Statement, before: View | None) -> View | None:
    """The view after a command that leaves its query alone."""
    after = _view_after(named, statement)
    if after is None:
        return None
    properties = {k: v for k, v in after.get("properties", {}).items() if not k.startswith(_SPARK_VIEW_PREFIX)}
    view = View(
        columns=columns_from_schema_json(after["schemaText"]),
        sql=after.get("viewText"),
        properties=StringMap(properties),
        comment=after.get("comment"),
        owner=after.get("owner") or None,
    )
    if before is None or before.sql != view.sql:
        return view
    return view.model_copy(update={"sources": before.sources, "lineage": before.lineage, "columns": before.columns})


def _replace_query(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """ALTER VIEW … AS."""
    query = node.plan_of("query")
    if is_temporary(node.args["name"]) or query is None:
        return
    named = name_v1_table(node.args["name"], context)
    before, after = _known_view(named, context), _view_after(named, statement)
    new = view_of(named, node, query, statement, context)
    kept = _view_after_change(named, statement, None) if after is not None else before
    if kept is not None:
        new = new.model_copy(update={"properties": kept.properties, "comment": kept.comment, "owner": kept.owner})
    yield _alter_event(named, statement, context, before, new)
    context.remember(named.name, KnownTable(new))


def change_properties(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """ALTER VIEW … SET or UNSET TBLPROPERTIES, and of its schema binding."""
    fields: Mapping[str, Any] = node.args.get("tableName") or node.args["name"]
    if is_temporary(fields):
        return
    named = name_v1_table(fields, context)
    before = _known_view(named, context)
    new = _view_after_change(named, statement, before)
    yield _alter_event(named, statement, context, before, new)
    _remember(named, new, context)


def rename_view(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    if is_temporary(node.args["oldName"]):
        return
    named = name_v1_table(node.args["oldName"], context)
    new_name = name_v1_table(node.args["newName"], context, named.name.database)
    before = _known_view(named, context)
    new = _view_after_change(new_name, statement, before) or before
    context.forget(named.name)
    target = {"renamed_to": new_name.name, "renamed_dataset": dataset_of_view(new_name, context)}
    yield _alter_event(named, statement, context, before, new).model_copy(update=target)
    _remember(new_name, new, context)


def _alter_event(
    named: NamedTable, statement: Statement, context: CaptureContext, before: View | None, new: View | None
) -> AlterView:
    return AlterView(
        context=named.catalog.context,
        effect=ModificationEffect.APPLIED,
        sql=statement.sql,
        identifier=named.name,
        dataset=dataset_of_view(named, context),
        format=Format.VIEW,
        view=before,
        new_view=new,
    )


def _remember(named: NamedTable, view: View | None, context: CaptureContext) -> None:
    if view is None:
        context.forget(named.name)
    else:
        context.remember(named.name, KnownTable(view))


def _known_view(named: NamedTable, context: CaptureContext) -> View | None:
    known = context.find_known(named.name)
    return known.table if known is not None and isinstance(known.table, View) else None


def drop_view_by_name(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """DropTableCommand of a view."""
    if not is_temporary(node.args["tableName"]):
        yield from _drop_events(name_v1_table(node.args["tableName"], context), node, statement, context)


def _drop_v2_view(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    named = name_v2_table(node, statement.plan, context)
    if named is not None:
        yield from _drop_events(named, node, statement, context)


def _drop_events(named: NamedTable, node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """As a table is dropped, reported as a view."""
    before = _known_view(named, context)
    for fields in drop_events(named, node, statement, context):
        yield DropView(
            context=fields.context,
            effect=fields.effect,
            sql=fields.sql,
            identifier=fields.identifier,
            dataset=dataset_of_view(named, context),
            format=Format.VIEW,
            view=before,
            ignore_if_not_exists=fields.ignore_if_not_exists,
        )


COMMANDS: Final[Mapping[str, CommandRule]] = {
    "CreateViewCommand": CommandRule(catalog=_create_view),
    "AlterViewAsCommand": CommandRule(catalog=_replace_query),
    "AlterViewSchemaBindingCommand": CommandRule(catalog=change_properties),
    "DropView": CommandRule(catalog=_drop_v2_view),
}
VIEW_VARIANTS: Final[Mapping[str, CommandRule]] = {
    "AlterTableSetPropertiesCommand": CommandRule(catalog=change_properties),
    "AlterTableUnsetPropertiesCommand": CommandRule(catalog=change_properties),
    "AlterTableRenameCommand": CommandRule(catalog=rename_view),
    "DropTableCommand": CommandRule(catalog=drop_view_by_name),
}
"""Commands of tables that are a view's where they say so."""
