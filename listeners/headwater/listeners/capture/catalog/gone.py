"""Tables that are dropped or get another name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from headwater.events import AlterTable, DropTable, Event, RenameTable, Table
from headwater.listeners.capture.catalog.described import Told, format_by, of_plan, of_second_kind
from headwater.listeners.capture.catalog.evidence import EFFECTS, Occasion, happened, looked_up
from headwater.listeners.capture.catalog.modified import table_after
from headwater.listeners.capture.catalog.places import Named, dataset_of, first_kind, second_kind
from headwater.listeners.capture.commands import Command
from headwater.listeners.capture.plan.tree import Node
from headwater.listeners.capture.scene import KnownTable, Scene
from headwater.listeners.capture.statements import Statement


def _dropped(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    """DropTable, of all catalogs."""
    named = second_kind(node, statement.plan, scene)
    if named is not None:
        yield from dropped(named, node, statement, scene)


def _dropped_by_name(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    """DropTableCommand."""
    return dropped(first_kind(node.args["tableName"], scene), node, statement, scene)


def dropped(named: Named, node: Node, statement: Statement, scene: Scene) -> Iterator[DropTable]:
    known = scene.known(named.name)
    if_exists = bool(node.args.get("ifExists"))
    gone = True if not if_exists else _is_gone(named, known, statement)
    if gone is False:
        return  # what is known stays: who dropped it may be told later
    table = known.table if known is not None and isinstance(known.table, Table) else None
    details: dict[str, Any] = {} if table is None else {"format": format_by(table.provider)}
    yield DropTable(
        context=named.catalog.context,
        effect=EFFECTS[gone],
        sql=statement.sql,
        identifier=named.name,
        dataset=(known.dataset if known else None) or dataset_of(named, table, scene),
        life=known.life if known else None,
        table=table,
        ignore_if_not_exists=if_exists,
        purge=bool(node.args.get("purge")),
        **details,
    )
    if gone:
        scene.forget(named.name)


def _is_gone(named: Named, known: KnownTable | None, statement: Statement) -> bool | None:
    """What this driver knew to be there was dropped; of anything else only the catalog's own event tells."""
    told = happened(statement, named.catalog, "DropTableEvent", named.name.database, named.name.table)
    return True if told is None and known is not None else told


def _renamed(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    """AlterTableRenameCommand. A managed table moves with its name."""
    named = first_kind(node.args["oldName"], scene)
    new = first_kind(node.args["newName"], scene, named.name.database)
    known = scene.known(named.name)
    old = Told(known.table) if known is not None and isinstance(known.table, Table) else None
    yield from _moved(named, new, old, table_after(new, statement), Occasion(statement, scene))


def _renamed_second(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    named = second_kind(node, statement.plan, scene)
    if named is None or named.resolved is None or "table" not in named.resolved.args:
        return
    new = named.renamed(node.args["newName"])
    old = of_plan(named.resolved.args["table"], named.resolved.output, statement.plan)
    found = next((told for told in looked_up(statement).get("tables", ()) if "class" in told), None)
    after = table_after(new, statement) if found is None else of_second_kind(found, old.table.columns)
    yield from _moved(named, new, old, after, Occasion(statement, scene))


def _moved(named: Named, new: Named, old: Told | None, after: Told | None, on: Occasion) -> Iterator[Event]:
    known = on.scene.forget(named.name)
    before = old.table if old else None
    location = after.table.location if after else None
    was = (known.dataset if known else None) or dataset_of(named, before, on.scene)
    dataset = dataset_of(new, after.table if after else None, on.scene)
    life = (old.life if old else None) or (known.life if known else None)
    table = before.model_copy(update={"location": location or before.location}) if before else None
    description = table or (after.table if after else None)
    told = after or old
    details: dict[str, Any] = {} if told is None else {"format": format_by(told.table.provider)}
    yield AlterTable(
        context=named.catalog.context,
        sql=on.statement.sql,
        identifier=named.name,
        dataset=was,
        life=life,
        changes=(RenameTable(table=new.name, dataset=dataset if dataset != was else None),),
        table=before,
        new_table=description,
        **details,
    )
    if description is not None:
        on.scene.remember(new.name, KnownTable(description, life, dataset or was))


COMMANDS: Final[Mapping[str, Command]] = {
    "DropTable": Command(catalog=_dropped),
    "DropTableCommand": Command(catalog=_dropped_by_name),
    "RenameTable": Command(catalog=_renamed_second),
    "AlterTableRenameCommand": Command(catalog=_renamed),
}
