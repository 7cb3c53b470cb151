"""AlterTable events: the old table, the changes, and what it is after them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from headwater.events import AlterTable, Effect, Event, SetLocation, Table, TableChange
from headwater.events.apply import ChangeError, apply
from headwater.listeners.capture.catalog.accounts import Account
from headwater.listeners.capture.catalog.described import Told, of_first_kind
from headwater.listeners.capture.catalog.evidence import Occasion, looked_up
from headwater.listeners.capture.catalog.places import Named, dataset_at, dataset_of
from headwater.listeners.capture.scene import KnownTable, Scene
from headwater.listeners.capture.statements import Statement

_CASE: Final = "spark.sql.caseSensitive"


def altered(
    named: Named,
    changes: Iterable[TableChange],
    old: Told,
    account: Account,
    on: Occasion,
    *,
    effect: Effect = Effect.APPLIED,
) -> Iterator[Event]:
    """Of a table as it was analysed: the new one is the old one with the changes."""
    placed = tuple(_placed(change, named, on.scene) for change in changes)
    new = _applied(placed, old.table, on.statement) or (account.after.table if account.after else None)
    yield AlterTable(
        context=named.catalog.context,
        effect=effect,
        sql=on.statement.sql,
        identifier=named.name,
        dataset=dataset_of(named, old.table, on.scene),
        life=old.life,
        format=old.format,
        schema_id=account.schema_id,
        produced=account.produced,
        parent=account.parent,
        changes=placed,
        table=old.table,
        new_table=new,
    )
    if effect is Effect.APPLIED:
        remember(named, new, old.life, on.scene)


def altered_since(
    named: Named,
    changes: Iterable[TableChange],
    new: Told | None,
    on: Occasion,
    *,
    effect: Effect = Effect.APPLIED,
) -> Iterator[Event]:
    """Of a table in Spark's own catalog that the plan only names: the old one is what this driver last knew, the new
    one was read afterwards."""
    known = on.scene.known(named.name)
    old = known.table if known is not None and isinstance(known.table, Table) else None
    told = tuple(changes)
    if not told:
        return
    after = new.table if new is not None else _applied(told, old, on.statement)
    placed = tuple(_placed(_as_written(change, after), named, on.scene) for change in told)
    before = old if old is not None else _unmoved(placed, after)
    details: dict[str, Any] = {} if new is None else {"format": new.format}
    yield AlterTable(
        context=named.catalog.context,
        effect=effect,
        sql=on.statement.sql,
        identifier=named.name,
        dataset=dataset_of(named, before, on.scene) or (known.dataset if known else None),
        life=known.life if known else None,
        changes=placed,
        table=old,
        new_table=after,
        **details,
    )
    if effect is Effect.APPLIED:
        remember(named, after, known.life if known else None, on.scene)


def table_after(named: Named, statement: Statement) -> Told | None:
    """The table when the statement had ended; one that was made since then is another one."""
    for told in looked_up(statement).get("tables", ()):
        if "database" not in told:
            continue
        if (told["database"].lower(), told["name"].lower()) == (named.name.database.lower(), named.name.table.lower()):
            found = of_first_kind(told)
            return None if found.created is not None and found.created > statement.ended else found
    return None


def remember(named: Named, table: Table | None, life: Any, scene: Scene) -> None:
    """What this driver knows of the table from now on; nothing, where that couldn't be told."""
    if table is None:
        scene.forget(named.name)
    else:
        scene.remember(named.name, KnownTable(table, life, dataset_of(named, table, scene)))


def _applied(changes: Iterable[TableChange], old: Table | None, statement: Statement) -> Table | None:
    if old is None:
        return None
    try:
        return apply(changes, old, case_sensitive=statement.confs.get(_CASE, "").lower() == "true")
    except ChangeError:
        return None


def _placed(change: TableChange, named: Named, scene: Scene) -> TableChange:
    """A location with the dataset that the table is from now on."""
    if not isinstance(change, SetLocation):
        return change
    return change.model_copy(update={"dataset": dataset_at(named, change.location, scene)})


def _as_written(change: TableChange, after: Table | None) -> TableChange:
    """A location as the catalog keeps it."""
    if isinstance(change, SetLocation) and after is not None and after.location is not None:
        return change.model_copy(update={"location": after.location})
    return change


def _unmoved(changes: Iterable[TableChange], after: Table | None) -> Table | None:
    """The table, if it is where it was before."""
    return None if any(isinstance(change, SetLocation) for change in changes) else after
