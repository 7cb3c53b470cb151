"""CREATE TABLE and REPLACE TABLE, with and without a query, of both kinds.

The columns that a statement asks a new table to have: listed, or those of the query that fills it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from headwater.events import CreateTable, Event, Table
from headwater.events.names import Generation
from headwater.events.tables import Column, TableKind
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.asking import find_evidence
from headwater.listeners.capture.catalog.descriptions import (
    describe_catalog_table,
    describe_requested_table,
    describe_v2_table,
)
from headwater.listeners.capture.catalog.named_tables import NamedTable, name_v1_table, name_v2_table
from headwater.listeners.capture.catalog.occurrence import (
    Occurrence,
    StatementContext,
    is_during,
    is_same_time,
    session_facts,
    was_event_posted,
)
from headwater.listeners.capture.catalog.table_evidence import NO_EVIDENCE, TableDescription, TableEvidence
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext, KnownTable
from headwater.listeners.capture.formats.external_rows import dataset_of_table
from headwater.listeners.capture.formats.relations import columns_of
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import Statement


def requested_columns(node: PlanNode, statement: Statement) -> tuple[Column, ...]:
    plan = statement.plan
    if "query" in node.args:
        return columns_of_query(node, statement)
    if "tableSchema" in node.args:
        return columns_from_schema_json(plan.types[node.args["tableSchema"]["schema"]])
    return tuple(_defined_columns(node, statement))


def columns_of_query(node: PlanNode, statement: Statement) -> tuple[Column, ...]:
    """What a query's columns become: all of them may be null, whatever the query's are."""
    plan = statement.plan
    query = node.plan_of("query")
    columns = () if query is None else columns_of(plan, plan.nodes[query].output)
    names = node.args.get("outputColumnNames") or [column.name for column in columns]
    return tuple(c.model_copy(update={"name": n, "nullable": True}) for c, n in zip(columns, names, strict=True))


def _defined_columns(node: PlanNode, statement: Statement) -> Iterator[Column]:
    """As Spark 4 has them: an expression each."""
    plan = statement.plan
    for reference in node.expressions_of("columns"):
        args = plan.expressions[reference].details.get("args", {})
        default: Mapping[str, Any] = args.get("defaultValue") or {}
        text = plan.expressions[default["x"]].details.get("args", {}) if "x" in default else default
        column = Column(
            name=args["name"],
            type=plan.types[args["dataType"]["type"]],
            nullable=args.get("nullable", True),
            comment=args.get("comment"),
            default=text.get("originalSQL"),
            generated=args.get("generationExpression"),
        )
        yield column


_IGNORE: Final = "Ignore"
_APPEND: Final = "Append"
_OVERWRITE: Final = "Overwrite"


@dataclass(frozen=True)
class _CreateRequest:
    """What a command asks for."""

    named: NamedTable
    requested: TableDescription
    if_not_exists: bool = False
    as_select: bool = False
    may_append: bool = False
    """Rows were added to the table if it was there."""
    may_replace: bool = False
    must_replace: bool = False


def create_v1_table(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """CreateDataSourceTableCommand, CreateTableCommand, and those with a query."""
    fields = node.args.get("table") or node.args.get("tableDesc")
    if fields is None:
        return
    mode = node.args.get("mode")
    wanted = describe_catalog_table(fields, statement.plan)
    if "query" in node.args:
        wanted = replace(wanted, table=wanted.table.model_copy(update={"columns": columns_of_query(node, statement)}))
    asked = _CreateRequest(
        name_v1_table(fields, context),
        wanted,
        if_not_exists=bool(node.args.get("ignoreIfExists")) or mode == _IGNORE,
        as_select="query" in node.args,
        may_replace=mode == _OVERWRITE,
        may_append=mode == _APPEND,
    )
    found = _find_table(asked.named, statement)
    is_same = found is not None and is_same_time(asked.requested.created, found.created)
    made = _find_session_creation(asked, statement, is_same=is_same)
    if made is Occurrence.HAPPENED and context.posts_vain_creations and asked.if_not_exists and found is not None:
        made = Occurrence.of(is_same and not _was_seen_before(asked.named, found, context))
    if made is Occurrence.HAPPENED and found is not None and not is_same:  # Hive's metastore tells a time of its own
        is_same = bool(is_during(statement, found.created))
    description = _confirm_description(asked.requested, found if is_same else None)
    yield from _creation_events(
        asked, description, made, _was_overwritten(asked.named, statement), StatementContext(statement, context)
    )


def _was_seen_before(named: NamedTable, found: TableDescription, context: CaptureContext) -> bool:
    """Two that race may ask for it in the same millisecond."""
    known = context.find_known(named.name)
    return known is not None and known.generation is not None and known.generation == found.generation


def _was_overwritten(named: NamedTable, statement: Statement) -> TableEvidence:
    """`saveAsTable` drops what it overwrites, and makes it anew."""
    was_dropped = was_event_posted(statement, named.catalog, "DropTableEvent", named.name.database, named.name.table)
    return TableEvidence(existed=True) if was_dropped else NO_EVIDENCE


def create_table_like(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """CREATE TABLE LIKE names its model only: what was made is read afterwards."""
    target: Mapping[str, Any] = node.args["targetTable"]
    named = name_v1_table(target, context, _current_database(target, statement))
    found = _find_table(named, statement)
    in_time = None if found is None else is_during(statement, found.created)
    asked = _CreateRequest(named, found or TableDescription(Table()), bool(node.args.get("ifNotExists")))
    made = _find_session_creation(asked, statement, is_same=bool(in_time))
    if found is None or not in_time:
        asked = replace(asked, requested=TableDescription(Table()))
    yield from _creation_events(asked, asked.requested, made, NO_EVIDENCE, StatementContext(statement, context))


def _current_database(target: Mapping[str, Any], statement: Statement) -> str:
    """Where a name without a database went: the catalog's event tells, and what was looked up."""
    for fields in session_facts(statement).get("tables", ()):
        if fields["name"].lower() == target["table"].lower():
            return str(fields["database"])
    return ""


def create_v2_table(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """CreateTable, ReplaceTable, and those with a query."""
    named = name_v2_table(node, statement.plan, context)
    if named is None:
        return
    replaces = node.name.startswith("Replace")
    requested = describe_requested_table(
        node.args["tableSpec"], requested_columns(node, statement), node.args.get("partitioning", ()), named.catalog
    )
    asked = _CreateRequest(
        named,
        requested,
        bool(node.args.get("ignoreIfExists")),
        "query" in node.args,
        may_replace=replaces,
        must_replace=replaces and not node.args.get("orCreate"),
    )
    account = find_evidence(named, statement, context)
    found = account.after or _find_table(named, statement)
    made = _find_creation(asked, found, account, statement, context)
    yield from _creation_events(
        asked, _confirm_description(asked.requested, found), made, account, StatementContext(statement, context)
    )


def _find_session_creation(asked: _CreateRequest, statement: Statement, *, is_same: bool) -> Occurrence:
    """The catalog's own event, else the moment of creation, which the command and the catalog both have."""
    name = asked.named.name
    was_posted = was_event_posted(statement, asked.named.catalog, "CreateTableEvent", name.database, name.table)
    if was_posted is not None:
        return Occurrence.of(was_posted)
    is_certain = is_same or not (asked.if_not_exists or asked.may_append)
    return Occurrence.HAPPENED if is_certain else Occurrence.UNKNOWN


def _find_creation(
    asked: _CreateRequest,
    found: TableDescription | None,
    account: TableEvidence,
    statement: Statement,
    context: CaptureContext,
) -> Occurrence:
    """Return whether a table of a V2 catalog was made, or made anew."""
    name = asked.named.name
    if asked.may_replace:
        return Occurrence.UNKNOWN if account.may_keep_table else Occurrence.of(account.did is not False)
    if not asked.if_not_exists:
        return Occurrence.HAPPENED
    was_posted = was_event_posted(statement, asked.named.catalog, "CreateTableEvent", name.database, name.table)
    if was_posted is not None:
        return Occurrence.of(was_posted)
    if found is not None and _was_seen_before(asked.named, found, context):
        return Occurrence.NOTHING
    if account.did is not None:
        return Occurrence.of(account.did and account.existed is not True)
    return Occurrence.of(is_during(statement, None if found is None else found.created))


def _find_table(named: NamedTable, statement: Statement) -> TableDescription | None:
    """The table as it was when the statement had ended, or later."""
    for fields in session_facts(statement).get("tables", ()):
        if "class" in fields:
            return describe_v2_table(fields, columns_from_schema_json(fields["schemaText"]))
        if (fields["database"].lower(), fields["name"].lower()) == (
            named.name.database.lower(),
            named.name.table.lower(),
        ):
            return describe_catalog_table(fields)
    return None


def _confirm_description(asked: TableDescription, found: TableDescription | None) -> TableDescription:
    """What the catalog has made of it, if it is still that; else what was asked for, and where the catalog put it."""
    if found is None:
        return asked
    whole = found.table
    if _names_of(whole.columns) != _names_of(asked.table.columns):
        update = {"location": whole.location, "owner": whole.owner, "provider": asked.table.provider or whole.provider}
        return replace(found, table=asked.table.model_copy(update=update), format=_format_of(asked, found))
    update = {"provider": whole.provider or asked.table.provider}
    if whole.table_kind is TableKind.UNKNOWN:
        update["table_kind"] = asked.table.table_kind
    return replace(found, table=whole.model_copy(update=update), format=_format_of(asked, found))


def _format_of(asked: TableDescription, found: TableDescription) -> Any:
    return found.format if found.format.value not in {"UNKNOWN", "OTHER"} else asked.format


def _names_of(columns: Iterable[Column]) -> list[str]:
    return [column.name.lower() for column in columns]


def _creation_events(
    asked: _CreateRequest, described: TableDescription, made: Occurrence, account: TableEvidence, on: StatementContext
) -> Iterator[Event]:
    """Yield none where it is known that nothing was made."""
    if made is Occurrence.NOTHING:
        return
    named = asked.named
    before = on.context.find_known(named.name)
    dataset = dataset_of_table(named, described.table, on.context)
    generation: Generation | None = described.generation
    existed = account.existed if account.existed is not None else (before is not None and asked.may_replace)
    replaced = asked.must_replace or (asked.may_replace and bool(existed))
    yield CreateTable(
        context=named.catalog.context,
        effect=made.effect,
        sql=on.statement.sql,
        identifier=named.name,
        dataset=dataset,
        generation=generation,
        format=described.format,
        schema_id=account.schema_id,
        produced=account.produced,
        parent=account.parent,
        table=described.table,
        ignore_if_exists=asked.if_not_exists,
        as_select=asked.as_select,
        replaced=replaced,
        replaced_generation=(account.replaced_generation or (before.generation if before else None))
        if replaced
        else None,
    )
    if made is Occurrence.HAPPENED:
        on.context.remember(named.name, KnownTable(described.table, generation, dataset))


COMMANDS: Final[Mapping[str, CommandRule]] = {
    "CreateDataSourceTableCommand": CommandRule(catalog=create_v1_table),
    "CreateTableCommand": CommandRule(catalog=create_v1_table),
    "CreateDataSourceTableAsSelectCommand": CommandRule(catalog=create_v1_table),
    "CreateHiveTableAsSelectCommand": CommandRule(catalog=create_v1_table),
    "OptimizedCreateHiveTableAsSelectCommand": CommandRule(catalog=create_v1_table),
    "CreateTableLikeCommand": CommandRule(catalog=create_table_like),
    "CreateTable": CommandRule(catalog=create_v2_table),
    "ReplaceTable": CommandRule(catalog=create_v2_table),
    "CreateTableAsSelect": CommandRule(catalog=create_v2_table),
    "ReplaceTableAsSelect": CommandRule(catalog=create_v2_table),
}
