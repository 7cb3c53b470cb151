"""Partitions that DDL adds, drops and renames, and TRUNCATE."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final

from headwater.events import (
    AddPartition,
    DropPartition,
    Effect,
    Event,
    Format,
    Life,
    OtherChange,
    RenamePartition,
    Table,
    TableChange,
    Truncate,
)
from headwater.events.base import Texts
from headwater.events.tables import Column
from headwater.listeners.capture.catalog.accounts import NOTHING
from headwater.listeners.capture.catalog.described import Told, format_by, of_plan
from headwater.listeners.capture.catalog.evidence import Occasion
from headwater.listeners.capture.catalog.modified import altered, altered_since, table_after
from headwater.listeners.capture.catalog.places import Named, dataset_of, first_kind, second_kind
from headwater.listeners.capture.commands import Command
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Statement

_DEFAULT: Final = "__HIVE_DEFAULT_PARTITION__"
"""How catalogs write that a partition's value is null."""
_DATE: Final = '"date"'
_EPOCH: Final = date(1970, 1, 1)

ReadChanges = Callable[[Node, Plan, tuple[Column, ...]], Iterator[TableChange]]


def values_of(spec: Mapping[str, str | None]) -> Texts:
    return Texts({key: _DEFAULT if text is None else text for key, text in spec.items()})


def _added(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    """With IF NOT EXISTS nobody knows which of them had been there: no catalog keeps reliably when each was made."""
    named = first_kind(node.args["tableName"], scene)
    effect = Effect.UNKNOWN if node.args.get("ifNotExists") else Effect.APPLIED
    changes = [
        AddPartition(partition=values_of(each["_1"]), location=each.get("_2"))
        for each in node.args["partitionSpecsAndLocs"]
    ]
    return _told(named, changes, Occasion(statement, scene), effect)


def _dropped(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    """With IF EXISTS nobody knows which of them were there."""
    named = first_kind(node.args["tableName"], scene)
    effect = Effect.UNKNOWN if node.args.get("ifExists") else Effect.APPLIED
    changes = [DropPartition(partition=values_of(spec)) for spec in node.args["specs"]]
    return _told(named, changes, Occasion(statement, scene), effect)


def _renamed(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    named = first_kind(node.args["tableName"], scene)
    old, new = values_of(node.args["oldPartition"]), values_of(node.args["newPartition"])
    return _told(named, [RenamePartition(partition=old, new_partition=new)], Occasion(statement, scene))


def _repaired(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    """Which partitions were found isn't told: listing all of them could take long."""
    words = [("enableAddPartitions", "added"), ("enableDropPartitions", "dropped")]
    did = " and ".join(word for key, word in words if node.args.get(key))
    change = OtherChange(what=f"partitions {did or 'added'} as they are found in the table's directory")
    return _told(first_kind(node.args["tableName"], scene), [change], Occasion(statement, scene))


def _told(
    named: Named, changes: Sequence[TableChange], on: Occasion, effect: Effect = Effect.APPLIED
) -> Iterator[Event]:
    return altered_since(named, changes, table_after(named, on.statement), on, effect=effect)


def _of_the_second_kind(read: ReadChanges, condition: str) -> Callable[[Node, Statement, Scene], Iterator[Event]]:
    """Of a table that keeps its partitions itself. Under `condition` nobody knows what was there."""

    def tell(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
        found = _resolved(node, statement, scene)
        if found is None:
            return
        named, old = found
        effect = Effect.UNKNOWN if node.args.get(condition) else Effect.APPLIED
        yield from altered(
            named,
            read(node, statement.plan, old.table.columns),
            old,
            NOTHING,
            Occasion(statement, scene),
            effect=effect,
        )

    return tell


def _resolved(node: Node, statement: Statement, scene: Scene) -> tuple[Named, Told] | None:
    named = second_kind(node, statement.plan, scene)
    if named is None or named.resolved is None or "table" not in named.resolved.args:
        return None
    return named, of_plan(named.resolved.args["table"], named.resolved.output, statement.plan)


def _spec(told: Mapping[str, Any], columns: tuple[Column, ...]) -> Texts:
    """Of a ResolvedPartitionSpec: the values as Spark has them inside, dates being days since 1970."""
    types = {column.name: column.type for column in columns}
    pairs = zip(told.get("names", ()), told.get("ident", ()), strict=False)
    return values_of({name: _text(value, types.get(name)) for name, value in pairs})


def _text(value: str | None, type_: str | None) -> str | None:
    return str(_EPOCH + timedelta(days=int(value))) if value is not None and type_ == _DATE else value


def _specs(node: Node, plan: Plan, argument: str) -> Iterator[Mapping[str, Any]]:
    """What resolved partitions are made of: they are expressions."""
    for reference in node.expressions_of(argument):
        yield plan.expressions[reference].details.get("args", {})


def _parts_added(node: Node, plan: Plan, columns: tuple[Column, ...]) -> Iterator[TableChange]:
    for told in _specs(node, plan, "parts"):
        yield AddPartition(partition=_spec(told, columns), location=told.get("location"))


def _parts_dropped(node: Node, plan: Plan, columns: tuple[Column, ...]) -> Iterator[TableChange]:
    for told in _specs(node, plan, "parts"):
        yield DropPartition(partition=_spec(told, columns))


def _parts_renamed(node: Node, plan: Plan, columns: tuple[Column, ...]) -> Iterator[TableChange]:
    (old,), (new,) = _specs(node, plan, "from"), _specs(node, plan, "to")
    yield RenamePartition(partition=_spec(old, columns), new_partition=_spec(new, columns))


def _recovered(node: Node, plan: Plan, columns: tuple[Column, ...]) -> Iterator[TableChange]:
    yield OtherChange(what="partitions added as they are found in the table's directory")


def _truncated(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    """TruncateTableCommand. The old table isn't in it."""
    named = first_kind(node.args["tableName"], scene)
    spec = node.args.get("partitionSpec")
    known = scene.known(named.name)
    table = known.table if known is not None and isinstance(known.table, Table) else None
    dataset = dataset_of(named, table, scene) or (known.dataset if known else None)
    yield Truncate(
        context=named.catalog.context,
        sql=statement.sql,
        identifier=named.name,
        dataset=dataset,
        life=known.life if known else None,
        format=format_by(table.provider) if table else Format.UNKNOWN,
        partitions=(values_of(spec),) if spec else (),
    )


def _truncated_second(node: Node, statement: Statement, scene: Scene) -> Iterator[Event]:
    found = _resolved(node, statement, scene)
    if found is None:
        return
    named, old = found
    part = next(_specs(node, statement.plan, "partitionSpec"), None)
    life: Life | None = old.life
    yield Truncate(
        context=named.catalog.context,
        sql=statement.sql,
        identifier=named.name,
        dataset=dataset_of(named, old.table, scene),
        life=life,
        format=old.format,
        partitions=(_spec(part, old.table.columns),) if part else (),
    )


COMMANDS: Final[Mapping[str, Command]] = {
    "AlterTableAddPartitionCommand": Command(catalog=_added),
    "AlterTableDropPartitionCommand": Command(catalog=_dropped),
    "AlterTableRenamePartitionCommand": Command(catalog=_renamed),
    "RepairTableCommand": Command(catalog=_repaired),
    "AddPartitions": Command(catalog=_of_the_second_kind(_parts_added, "ifNotExists")),
    "DropPartitions": Command(catalog=_of_the_second_kind(_parts_dropped, "ifExists")),
    "RenamePartitions": Command(catalog=_of_the_second_kind(_parts_renamed, "")),
    "RecoverPartitions": Command(catalog=_of_the_second_kind(_recovered, "")),
    "RepairTable": Command(catalog=_of_the_second_kind(_recovered, "")),
    "TruncateTableCommand": Command(catalog=_truncated),
    "TruncateTable": Command(catalog=_truncated_second),
    "TruncatePartition": Command(catalog=_truncated_second),
}
