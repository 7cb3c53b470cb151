"""Partitions that DDL adds, drops and renames, and TRUNCATE."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final

from headwater.events import Event, Format, Table, Truncate
from headwater.events.base import StringMap
from headwater.events.catalog import ModificationEffect
from headwater.events.changes import AddPartition, DropPartition, OtherChange, RenamePartition, TableChange
from headwater.events.names import Generation
from headwater.events.tables import Column
from headwater.listeners.capture.catalog.descriptions import describe_resolved_table, format_of_table
from headwater.listeners.capture.catalog.named_tables import NamedTable, name_v1_table, name_v2_table
from headwater.listeners.capture.catalog.occurrence import StatementContext
from headwater.listeners.capture.catalog.table_evidence import NO_EVIDENCE, TableDescription
from headwater.listeners.capture.catalog.table_modification import alter_events, alter_events_by_name, table_after
from headwater.listeners.capture.commands import CommandRule
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.external_rows import dataset_of_table
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import Statement

_DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""How catalogs write that a partition's value is null."""
_DATE: Final = '"date"'
_EPOCH: Final = date(1970, 1, 1)

ReadPartitionChanges = Callable[[PlanNode, Plan, tuple[Column, ...]], Iterator[TableChange]]


def partition_values(spec: Mapping[str, str | None]) -> StringMap:
    return StringMap({key: _DEFAULT_PARTITION if text is None else text for key, text in spec.items()})


def _add_partitions(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """With IF NOT EXISTS nobody knows which of them had been there: no catalog keeps reliably when each was made."""
    named = name_v1_table(node.args["tableName"], context)
    effect = ModificationEffect.UNKNOWN if node.args.get("ifNotExists") else ModificationEffect.APPLIED
    changes = [
        AddPartition(partition=partition_values(partition["_1"]), location=partition.get("_2"))
        for partition in node.args["partitionSpecsAndLocs"]
    ]
    return _partition_event(named, changes, StatementContext(statement, context), effect)


def _drop_partitions(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """With IF EXISTS nobody knows which of them were there."""
    named = name_v1_table(node.args["tableName"], context)
    effect = ModificationEffect.UNKNOWN if node.args.get("ifExists") else ModificationEffect.APPLIED
    changes = [DropPartition(partition=partition_values(spec)) for spec in node.args["specs"]]
    return _partition_event(named, changes, StatementContext(statement, context), effect)


def _rename_partition(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    named = name_v1_table(node.args["tableName"], context)
    old, new = partition_values(node.args["oldPartition"]), partition_values(node.args["newPartition"])
    return _partition_event(
        named, [RenamePartition(partition=old, new_partition=new)], StatementContext(statement, context)
    )


def _repair_table(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """Which partitions were found isn't recorded: listing all of them could take long."""
    words = [("enableAddPartitions", "added"), ("enableDropPartitions", "dropped")]
    did = " and ".join(word for key, word in words if node.args.get(key))
    change = OtherChange(what=f"partitions {did or 'added'} as they are found in the table's directory")
    return _partition_event(
        name_v1_table(node.args["tableName"], context), [change], StatementContext(statement, context)
    )


def _partition_event(
    named: NamedTable,
    changes: Sequence[TableChange],
    on: StatementContext,
    effect: ModificationEffect = ModificationEffect.APPLIED,
) -> Iterator[Event]:
    return alter_events_by_name(named, changes, table_after(named, on.statement), on, effect=effect)


def _v2_partitions(
    read: ReadPartitionChanges, condition: str
) -> Callable[[PlanNode, Statement, CaptureContext], Iterator[Event]]:
    """Of a table that keeps its partitions itself. Under `condition` nobody knows what was there."""

    def translate(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
        found = _resolved_table(node, statement, context)
        if found is None:
            return
        named, old = found
        effect = ModificationEffect.UNKNOWN if node.args.get(condition) else ModificationEffect.APPLIED
        yield from alter_events(
            named,
            read(node, statement.plan, old.table.columns),
            old,
            NO_EVIDENCE,
            StatementContext(statement, context),
            effect=effect,
        )

    return translate


def _resolved_table(
    node: PlanNode, statement: Statement, context: CaptureContext
) -> tuple[NamedTable, TableDescription] | None:
    named = name_v2_table(node, statement.plan, context)
    if named is None or named.resolved is None or "table" not in named.resolved.args:
        return None
    return named, describe_resolved_table(named.resolved.args["table"], named.resolved.output, statement.plan)


def _spec(fields: Mapping[str, Any], columns: tuple[Column, ...]) -> StringMap:
    """Of a ResolvedPartitionSpec: the values as Spark has them inside, dates being days since 1970."""
    types = {column.name: column.type for column in columns}
    pairs = zip(fields.get("names", ()), fields.get("ident", ()), strict=False)
    return partition_values({name: _text(value, types.get(name)) for name, value in pairs})


def _text(value: str | None, type_: str | None) -> str | None:
    return str(_EPOCH + timedelta(days=int(value))) if value is not None and type_ == _DATE else value


def _specs(node: PlanNode, plan: Plan, argument: str) -> Iterator[Mapping[str, Any]]:
    """What resolved partitions are made of: they are expressions."""
    for reference in node.expressions_of(argument):
        yield plan.expressions[reference].details.get("args", {})


def _added_specs(node: PlanNode, plan: Plan, columns: tuple[Column, ...]) -> Iterator[TableChange]:
    for fields in _specs(node, plan, "parts"):
        yield AddPartition(partition=_spec(fields, columns), location=fields.get("location"))


def _dropped_specs(node: PlanNode, plan: Plan, columns: tuple[Column, ...]) -> Iterator[TableChange]:
    for fields in _specs(node, plan, "parts"):
        yield DropPartition(partition=_spec(fields, columns))


def _renamed_specs(node: PlanNode, plan: Plan, columns: tuple[Column, ...]) -> Iterator[TableChange]:
    (old,), (new,) = _specs(node, plan, "from"), _specs(node, plan, "to")
    yield RenamePartition(partition=_spec(old, columns), new_partition=_spec(new, columns))


def _recovered_specs(node: PlanNode, plan: Plan, columns: tuple[Column, ...]) -> Iterator[TableChange]:
    yield OtherChange(what="partitions added as they are found in the table's directory")


def _truncate_v1_table(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    """TruncateTableCommand. The old table isn't in it."""
    named = name_v1_table(node.args["tableName"], context)
    spec = node.args.get("partitionSpec")
    known = context.find_known(named.name)
    table = known.table if known is not None and isinstance(known.table, Table) else None
    dataset = dataset_of_table(named, table, context) or (known.dataset if known else None)
    yield Truncate(
        context=named.catalog.context,
        sql=statement.sql,
        identifier=named.name,
        dataset=dataset,
        generation=known.generation if known else None,
        format=format_of_table(table.provider) if table else Format.UNKNOWN,
        partitions=(partition_values(spec),) if spec else (),
    )


def _truncate_v2_table(node: PlanNode, statement: Statement, context: CaptureContext) -> Iterator[Event]:
    found = _resolved_table(node, statement, context)
    if found is None:
        return
    named, old = found
    part = next(_specs(node, statement.plan, "partitionSpec"), None)
    generation: Generation | None = old.generation
    yield Truncate(
        context=named.catalog.context,
        sql=statement.sql,
        identifier=named.name,
        dataset=dataset_of_table(named, old.table, context),
        generation=generation,
        format=old.format,
        partitions=(_spec(part, old.table.columns),) if part else (),
    )


COMMANDS: Final[Mapping[str, CommandRule]] = {
    "AlterTableAddPartitionCommand": CommandRule(catalog=_add_partitions),
    "AlterTableDropPartitionCommand": CommandRule(catalog=_drop_partitions),
    "AlterTableRenamePartitionCommand": CommandRule(catalog=_rename_partition),
    "RepairTableCommand": CommandRule(catalog=_repair_table),
    "AddPartitions": CommandRule(catalog=_v2_partitions(_added_specs, "ifNotExists")),
    "DropPartitions": CommandRule(catalog=_v2_partitions(_dropped_specs, "ifExists")),
    "RenamePartitions": CommandRule(catalog=_v2_partitions(_renamed_specs, "")),
    "RecoverPartitions": CommandRule(catalog=_v2_partitions(_recovered_specs, "")),
    "RepairTable": CommandRule(catalog=_v2_partitions(_recovered_specs, "")),
    "TruncateTableCommand": CommandRule(catalog=_truncate_v1_table),
    "TruncateTable": CommandRule(catalog=_truncate_v2_table),
    "TruncatePartition": CommandRule(catalog=_truncate_v2_table),
}
