"""CREATE TABLE and REPLACE TABLE, with and without a query, of both kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from headwater.events import CreateTable, Event, Life, Table
from headwater.events.tables import Column, TableKind
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.catalog.accounts import NOTHING, Account, account_of
from headwater.listeners.capture.catalog.columns import columns_asked, of_query
from headwater.listeners.capture.catalog.described import Told, of_command, of_first_kind, of_second_kind
from headwater.listeners.capture.catalog.evidence import EFFECTS, Occasion, during, happened, looked_up, same_moment
from headwater.listeners.capture.catalog.places import Named, dataset_of, first_kind, second_kind
from headwater.listeners.capture.commands import Command
from headwater.listeners.capture.plan.tree import Node
from headwater.listeners.capture.scene import KnownTable, Scene
from headwater.listeners.capture.statements import Statement

_IGNORE: Final = "Ignore"
_APPEND: Final = "Append"
_OVERWRITE: Final = "Overwrite"


@dataclass(frozen=True)
class _Asked:
    """What a command asks for."""

    named: Named
    told: Told
    if_not_exists: bool = False
    as_select: bool = False
    may_append: bool = False
    """Rows were added to the table if it was there."""
    may_replace: bool = False
    must_replace: bool = False


def of_the_first_kind(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    """CreateDataSourceTableCommand, CreateTableCommand, and those with a query."""
    told = node.args.get("table") or node.args.get("tableDesc")
    if told is None:
        return
    mode = node.args.get("mode")
    wanted = of_first_kind(told, statement.plan)
    if "query" in node.args:
        wanted = replace(wanted, table=wanted.table.model_copy(update={"columns": of_query(node, statement)}))
    asked = _Asked(
        first_kind(told, scene),
        wanted,
        if_not_exists=bool(node.args.get("ignoreIfExists")) or mode == _IGNORE,
        as_select="query" in node.args,
        may_replace=mode == _OVERWRITE,
        may_append=mode == _APPEND,
    )
    found = _looked_up(asked.named, statement)
    is_same = found is not None and same_moment(asked.told.created, found.created)
    made = _made_in_session_catalog(asked, statement, is_same=is_same)
    if made and found is not None and not is_same:  # Hive's metastore tells a time of its own
        is_same = bool(during(statement, found.created))
    description = _confirmed(asked.told, found if is_same else None)
    yield from _created(asked, description, made, _overwritten(asked.named, statement), Occasion(statement, scene))


def _overwritten(named: Named, statement: Statement) -> Account:
    """`saveAsTable` drops what it overwrites, and makes it anew."""
    told = happened(statement, named.catalog, "DropTableEvent", named.name.database, named.name.table)
    return Account(existed=True) if told else NOTHING


def like(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    """CREATE TABLE LIKE names its model only: what was made is read afterwards."""
    target: Mapping[str, Any] = node.args["targetTable"]
    named = first_kind(target, scene, _current_database(target, statement))
    found = _looked_up(named, statement)
    in_time = None if found is None else during(statement, found.created)
    asked = _Asked(named, found or Told(Table()), bool(node.args.get("ifNotExists")))
    made = _made_in_session_catalog(asked, statement, is_same=bool(in_time))
    if found is None or not in_time:
        asked = replace(asked, told=Told(Table()))
    yield from _created(asked, asked.told, made, NOTHING, Occasion(statement, scene))


def _current_database(target: Mapping[str, Any], statement: Statement) -> str:
    """Where a name without a database went: the catalog's event tells, and what was looked up."""
    for told in looked_up(statement).get("tables", ()):
        if told["name"].lower() == target["table"].lower():
            return str(told["database"])
    return ""


def of_the_second_kind(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    """CreateTable, ReplaceTable, and those with a query."""
    named = second_kind(node, statement.plan, scene)
    if named is None:
        return
    replaces = node.name.startswith("Replace")
    told = of_command(
        node.args["tableSpec"], columns_asked(node, statement), node.args.get("partitioning", ()), named.catalog
    )
    asked = _Asked(
        named,
        told,
        bool(node.args.get("ignoreIfExists")),
        "query" in node.args,
        may_replace=replaces,
        must_replace=replaces and not node.args.get("orCreate"),
    )
    account = account_of(named, statement, scene)
    found = account.after or _looked_up(named, statement)
    made = _made(asked, found, account, statement, scene)
    yield from _created(asked, _confirmed(asked.told, found), made, account, Occasion(statement, scene))


def _made_in_session_catalog(asked: _Asked, statement: Statement, *, is_same: bool) -> bool | None:
    """The catalog's own event, else the moment of creation, which the command and the catalog both have."""
    name = asked.named.name
    told = happened(statement, asked.named.catalog, "CreateTableEvent", name.database, name.table)
    if told is not None:
        return told
    return True if is_same or not (asked.if_not_exists or asked.may_append) else None


def _made(asked: _Asked, found: Told | None, account: Account, statement: Statement, scene: Scene) -> bool | None:
    name = asked.named.name
    if asked.may_replace or not asked.if_not_exists:
        return True
    told = happened(statement, asked.named.catalog, "CreateTableEvent", name.database, name.table)
    if told is not None:
        return told
    known = scene.known(name)
    if known is not None and found is not None and known.life is not None and known.life == found.life:
        return False
    if account.did is not None:
        return account.did and account.existed is not True
    return during(statement, None if found is None else found.created)


def _looked_up(named: Named, statement: Statement) -> Told | None:
    """The table as it was when the statement had ended, or later."""
    for told in looked_up(statement).get("tables", ()):
        if "class" in told:
            return of_second_kind(told, columns_from_schema_json(told["schemaText"]))
        if (told["database"].lower(), told["name"].lower()) == (
            named.name.database.lower(),
            named.name.table.lower(),
        ):
            return of_first_kind(told)
    return None


def _confirmed(asked: Told, found: Told | None) -> Told:
    """What the catalog has made of it, if it is still that; else what was asked for, and where the catalog put it."""
    if found is None:
        return asked
    whole = found.table
    if _names(whole.columns) != _names(asked.table.columns):
        update = {"location": whole.location, "owner": whole.owner, "provider": asked.table.provider or whole.provider}
        return replace(found, table=asked.table.model_copy(update=update), format=_format(asked, found))
    update = {"provider": whole.provider or asked.table.provider}
    if whole.table_kind is TableKind.UNKNOWN:
        update["table_kind"] = asked.table.table_kind
    return replace(found, table=whole.model_copy(update=update), format=_format(asked, found))


def _format(asked: Told, found: Told) -> Any:
    return found.format if found.format.value not in {"UNKNOWN", "OTHER"} else asked.format


def _names(columns: Iterable[Column]) -> list[str]:
    return [column.name.lower() for column in columns]


def _created(asked: _Asked, told: Told, made: bool | None, account: Account, on: Occasion) -> Iterator[Event]:
    """None where it is known that nothing was made."""
    if made is False:
        return
    named = asked.named
    before = on.scene.known(named.name)
    dataset = dataset_of(named, told.table, on.scene)
    life: Life | None = told.life
    existed = account.existed if account.existed is not None else (before is not None and asked.may_replace)
    replaced = asked.must_replace or (asked.may_replace and bool(existed))
    yield CreateTable(
        context=named.catalog.context,
        effect=EFFECTS[made],
        sql=on.statement.sql,
        identifier=named.name,
        dataset=dataset,
        life=life,
        format=told.format,
        schema_id=account.schema_id,
        produced=account.produced,
        parent=account.parent,
        table=told.table,
        ignore_if_exists=asked.if_not_exists,
        as_select=asked.as_select,
        replaced=replaced,
        replaced_life=(account.replaced_life or (before.life if before else None)) if replaced else None,
    )
    if made:
        on.scene.remember(named.name, KnownTable(told.table, life, dataset))


COMMANDS: Final[Mapping[str, Command]] = {
    "CreateDataSourceTableCommand": Command(catalog=of_the_first_kind),
    "CreateTableCommand": Command(catalog=of_the_first_kind),
    "CreateDataSourceTableAsSelectCommand": Command(catalog=of_the_first_kind),
    "CreateHiveTableAsSelectCommand": Command(catalog=of_the_first_kind),
    "OptimizedCreateHiveTableAsSelectCommand": Command(catalog=of_the_first_kind),
    "CreateTableLikeCommand": Command(catalog=like),
    "CreateTable": Command(catalog=of_the_second_kind),
    "ReplaceTable": Command(catalog=of_the_second_kind),
    "CreateTableAsSelect": Command(catalog=of_the_second_kind),
    "ReplaceTableAsSelect": Command(catalog=of_the_second_kind),
}
