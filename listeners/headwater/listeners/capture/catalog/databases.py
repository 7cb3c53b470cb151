"""CREATE, ALTER and DROP DATABASE, which are namespaces in V2 catalogs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from headwater.events import AlterDatabase, CreateDatabase, Database, DatabaseName, DropDatabase, Effect, Event
from headwater.events.base import Texts
from headwater.listeners.capture.catalog.described import database_from
from headwater.listeners.capture.catalog.evidence import EFFECTS, happened, looked_up
from headwater.listeners.capture.catalog.places import database_of
from headwater.listeners.capture.commands import Command
from headwater.listeners.capture.plan.tree import Node
from headwater.listeners.capture.scene import NamedCatalog, Scene
from headwater.listeners.capture.statements import Statement

Edit = Callable[[Node, Database], Database]


def _created(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    found = database_of(node, statement.plan, scene)
    if found is None:
        return
    catalog, name = found
    if_not_exists = bool(node.args.get("ifNotExists"))
    known = scene.database(name)
    told = happened(statement, catalog, "CreateDatabaseEvent", name.database) if if_not_exists else True
    made = False if told is None and known is not None else told
    if made is False:
        return
    after = looked_up(statement).get("namespace")
    database = _asked(node) if after is None or made is None else database_from(after)
    yield CreateDatabase(
        context=catalog.context,
        effect=EFFECTS[made],
        sql=statement.sql,
        identifier=name,
        database=database,
        ignore_if_exists=if_not_exists,
    )
    if made:
        scene.remember_database(name, database)


def _asked(node: Node) -> Database:
    """What the command says; CreateDatabaseCommand has some of it as arguments of their own."""
    told: dict[str, str] = dict(node.args.get("properties") or node.args.get("props") or {})
    location = node.args.get("path") or told.pop("location", None)
    comment = node.args.get("comment") or told.pop("comment", None)
    return Database(comment=comment, location=location, owner=told.pop("owner", None), properties=Texts(told))


def _altered(edit: Edit) -> Callable[[Node, Statement, Scene], Iterator[Event]]:
    """The new one is read afterwards; where that couldn't be done it is the old one, edited, if that is known."""

    def tell(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
        found = database_of(node, statement.plan, scene)
        if found is None:
            return
        catalog, name = found
        old, after = scene.database(name), looked_up(statement).get("namespace")
        new = edit(node, old or Database()) if after is None else database_from(after)
        is_known = after is not None or old is not None
        yield AlterDatabase(
            context=catalog.context,
            effect=Effect.APPLIED if is_known else Effect.UNKNOWN,
            sql=statement.sql,
            identifier=name,
            database=old,
            new_database=new,
        )
        if is_known:
            scene.remember_database(name, new)

    return tell


def _with_properties(node: Node, old: Database) -> Database:
    told: Mapping[str, str] = node.args.get("properties") or node.args.get("props") or {}
    return old.model_copy(update={"properties": Texts({**old.properties, **told})})


def _without_properties(node: Node, old: Database) -> Database:
    gone: set[str] = set(node.args.get("propKeys") or ())
    return old.model_copy(update={"properties": Texts({k: v for k, v in old.properties.items() if k not in gone})})


def _moved(node: Node, old: Database) -> Database:
    return old.model_copy(update={"location": node.args.get("location") or node.args.get("path")})


def _commented(node: Node, old: Database) -> Database:
    return old.model_copy(update={"comment": node.args.get("comment")})


def _dropped(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    found = database_of(node, statement.plan, scene)
    if found is None:
        return
    catalog, name = found
    if_exists = bool(node.args.get("ifExists"))
    known = scene.database(name)
    gone = True if not if_exists else _is_gone(catalog, name, known, statement)
    if gone is not None:
        scene.forget_database(name)
    if gone is False:
        return
    yield DropDatabase(
        context=catalog.context,
        effect=EFFECTS[gone],
        sql=statement.sql,
        identifier=name,
        database=known,
        ignore_if_not_exists=if_exists,
        cascade=bool(node.args.get("cascade")),
    )


def _is_gone(catalog: NamedCatalog, name: DatabaseName, known: Database | None, statement: Statement) -> bool | None:
    told = happened(statement, catalog, "DropDatabaseEvent", name.database)
    return True if told is None and known is not None else told


COMMANDS: Final[Mapping[str, Command]] = {
    "CreateNamespace": Command(catalog=_created),
    "CreateDatabaseCommand": Command(catalog=_created),
    "SetNamespaceProperties": Command(catalog=_altered(_with_properties)),
    "AlterDatabasePropertiesCommand": Command(catalog=_altered(_with_properties)),
    "UnsetNamespaceProperties": Command(catalog=_altered(_without_properties)),
    "UnsetNamespacePropertiesCommand": Command(catalog=_altered(_without_properties)),
    "SetNamespaceLocation": Command(catalog=_altered(_moved)),
    "AlterDatabaseSetLocationCommand": Command(catalog=_altered(_moved)),
    "CommentOnNamespace": Command(catalog=_altered(_commented)),
    "DropNamespace": Command(catalog=_dropped),
    "DropDatabaseCommand": Command(catalog=_dropped),
}
