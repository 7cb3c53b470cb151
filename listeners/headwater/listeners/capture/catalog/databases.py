"""CREATE, ALTER and DROP DATABASE, which are namespaces in V2 catalogs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from headwater.events import AlterDatabase, CreateDatabase, DropDatabase, Event
from headwater.events.base import StringMap
from headwater.events.catalog import DatabaseName, ModificationEffect
from headwater.events.tables import Database
from headwater.listeners.capture.catalog.descriptions import describe_database
from headwater.listeners.capture.catalog.named_tables import database_of
from headwater.listeners.capture.catalog.occurrence import Occurrence, session_facts, was_event_posted
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext, SessionNamedCatalog
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import Statement

Edit = Callable[[PlanNode, Database], Database]


def _create_database(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    found = database_of(node, statement.plan, context)
    if found is None:
        return
    catalog, name = found
    if_not_exists = bool(node.args.get("ifNotExists"))
    known = context.database(name)
    was_posted = was_event_posted(statement, catalog, "CreateDatabaseEvent", name.database) if if_not_exists else True
    made = Occurrence.of(False if was_posted is None and known is not None else was_posted)
    if made is Occurrence.NOTHING:
        return
    after = session_facts(statement).get("namespace")
    database = _requested_database(node) if after is None or made is Occurrence.UNKNOWN else describe_database(after)
    yield CreateDatabase(
        context=catalog.context,
        effect=made.effect,
        sql=statement.sql,
        identifier=name,
        database=database,
        ignore_if_exists=if_not_exists,
    )
    if made is Occurrence.HAPPENED:
        context.remember_database(name, database)


def _requested_database(node: PlanNode) -> Database:
    """What the command says; CreateDatabaseCommand has some of it as arguments of their own."""
    fields: dict[str, str] = dict(node.args.get("properties") or node.args.get("props") or {})
    location = node.args.get("path") or fields.pop("location", None)
    comment = node.args.get("comment") or fields.pop("comment", None)
    return Database(comment=comment, location=location, owner=fields.pop("owner", None), properties=StringMap(fields))


def _alter_database(edit: Edit) -> Callable[[PlanNode, Statement, CaptureContext], Iterator[Event]]:
    """The new one is read afterwards; where that couldn't be done it is the old one, edited, if that is known."""

    def translate(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
        found = database_of(node, statement.plan, context)
        if found is None:
            return
        catalog, name = found
        old, after = context.database(name), session_facts(statement).get("namespace")
        new = edit(node, old or Database()) if after is None else describe_database(after)
        is_known = after is not None or old is not None
        yield AlterDatabase(
            context=catalog.context,
            effect=ModificationEffect.APPLIED if is_known else ModificationEffect.UNKNOWN,
            sql=statement.sql,
            identifier=name,
            database=old,
            new_database=new,
        )
        if is_known:
            context.remember_database(name, new)

    return translate


def _with_properties(node: PlanNode, old: Database) -> Database:
    fields: Mapping[str, str] = node.args.get("properties") or node.args.get("props") or {}
    return old.model_copy(update={"properties": StringMap({**old.properties, **fields})})


def _without_properties(node: PlanNode, old: Database) -> Database:
    gone: set[str] = set(node.args.get("propKeys") or ())
    return old.model_copy(update={"properties": StringMap({k: v for k, v in old.properties.items() if k not in gone})})


def _with_location(node: PlanNode, old: Database) -> Database:
    return old.model_copy(update={"location": node.args.get("location") or node.args.get("path")})


def _with_comment(node: PlanNode, old: Database) -> Database:
    return old.model_copy(update={"comment": node.args.get("comment")})


def _drop_database(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    found = database_of(node, statement.plan, context)
    if found is None:
        return
    catalog, name = found
    if_exists = bool(node.args.get("ifExists"))
    known = context.database(name)
    dropped = _find_drop(catalog, name, known, statement) if if_exists else Occurrence.HAPPENED
    if dropped is not Occurrence.UNKNOWN:
        context.forget_database(name)
    if dropped is Occurrence.NOTHING:
        return
    yield DropDatabase(
        context=catalog.context,
        effect=dropped.effect,
        sql=statement.sql,
        identifier=name,
        database=known,
        ignore_if_not_exists=if_exists,
        cascade=bool(node.args.get("cascade")),
    )


def _find_drop(
    catalog: SessionNamedCatalog, name: DatabaseName, known: Database | None, statement: Statement
) -> Occurrence:
    was_posted = was_event_posted(statement, catalog, "DropDatabaseEvent", name.database)
    return Occurrence.of(True if was_posted is None and known is not None else was_posted)


COMMANDS: Final[Mapping[str, CommandRule]] = {
    "CreateNamespace": CommandRule(catalog=_create_database),
    "CreateDatabaseCommand": CommandRule(catalog=_create_database),
    "SetNamespaceProperties": CommandRule(catalog=_alter_database(_with_properties)),
    "AlterDatabasePropertiesCommand": CommandRule(catalog=_alter_database(_with_properties)),
    "UnsetNamespaceProperties": CommandRule(catalog=_alter_database(_without_properties)),
    "UnsetNamespacePropertiesCommand": CommandRule(catalog=_alter_database(_without_properties)),
    "SetNamespaceLocation": CommandRule(catalog=_alter_database(_with_location)),
    "AlterDatabaseSetLocationCommand": CommandRule(catalog=_alter_database(_with_location)),
    "CommentOnNamespace": CommandRule(catalog=_alter_database(_with_comment)),
    "DropNamespace": CommandRule(catalog=_drop_database),
    "DropDatabaseCommand": CommandRule(catalog=_drop_database),
}
