"""What is written: a relation, a table that the statement makes, one of which only the name is there, or a path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import Format, TableName
from headwater.events.base import StringMap
from headwater.events.jobs import CommitKind, OverwriteScope, SinkSchema
from headwater.events.scalars import FieldPath
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.hudi.table_refs import (
    HUDI_COLUMNS,
    PROVIDER,
    HudiTableRef,
    find_table_ref,
    identity_partitioning,
    parse_key,
    place_path,
    without_internal_columns,
)
from headwater.listeners.capture.formats.protocol import WriteTarget
from headwater.listeners.capture.formats.relations import columns_of, table_name
from headwater.listeners.capture.plan.tree import Plan, PlanNode

_SOURCES: Final = ("org.apache.hudi.", PROVIDER)
_OPERATION: Final = "hoodie.datasource.write.operation"
_KEY: Final = "hoodie.datasource.write.recordkey.field"
_PARTITIONS: Final = "hoodie.datasource.write.partitionpath.field"


def sink_of(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
    if node.name == "SaveIntoDataSourceCommand":
        return _save_target(node, plan, context)
    ref = find_table_ref(node, plan)
    return None if ref is None or ref.changes else target_of_ref(ref, node, context)


def target_of_ref(ref: HudiTableRef, node: PlanNode, context: CaptureContext) -> WriteTarget:
    sink = SinkSchema(
        dataset=place_path(ref.path, context.environment),
        table=ref.table,
        format=Format.HUDI,
        columns=ref.columns,
        partitioning=ref.partitioning,
        primary_key=ref.primary_key,
    )
    catalog = None if ref.table is None else context.session_catalog()
    return WriteTarget(sink, catalog, versioned=True, node=node.index, hints=session_hints(context))


def named_table_target(name: TableName, path: str | None, context: CaptureContext) -> WriteTarget:
    """A table of which the plan has no more than its name."""
    known = context.find_known(name)
    dataset = place_path(path, context.environment) or (known.dataset if known else None)
    sink = SinkSchema(dataset=dataset, table=name, format=Format.HUDI)
    return WriteTarget(sink, context.session_catalog(), versioned=True, hints=session_hints(context))


def created_table_target(
    table: Mapping[str, Any], mode: str | None, query: int | None, plan: Plan, context: CaptureContext
) -> WriteTarget:
    """The table that CREATE TABLE AS SELECT or `saveAsTable` makes, or adds to."""
    columns = columns_from_schema_json(plan.types[table["schema"]])
    if not columns and query is not None:
        columns = columns_of(plan, plan.nodes[query].output)
    sink = SinkSchema(
        dataset=place_path(table.get("storage", {}).get("location"), context.environment),
        table=table_name(table),
        format=Format.HUDI,
        columns=without_internal_columns(columns),
        partitioning=identity_partitioning(table.get("partitions", ())),
        primary_key=parse_key(table.get("properties", {}).get("primaryKey")),
    )
    adds = mode == "Append"
    kind = CommitKind.APPEND if adds else CommitKind.CREATE
    extent = OverwriteScope.UNKNOWN if adds else OverwriteScope.ALL
    return WriteTarget(sink, context.session_catalog(), kind, extent, versioned=True, hints=session_hints(context))


def columns_by_own_name(plan: Plan, query: int) -> tuple[FieldPath | None, ...]:
    """Columns by their names; those that Hudi makes itself go nowhere."""
    names = (plan.attribute(number).name for number in plan.nodes[query].output)
    return tuple(None if name in HUDI_COLUMNS else (name,) for name in names)


def session_hints(context: CaptureContext) -> dict[str, Any]:
    return {"environment": context.environment}


def _save_target(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
    source = (node.args.get("dataSource") or {}).get("class", "")
    if not source.startswith(_SOURCES):
        return None
    options = {key.lower(): text for key, text in node.args.get("options", {}).items()}
    query = node.plan_of("query")
    columns = () if query is None else columns_of(plan, plan.nodes[query].output)
    sink = SinkSchema(
        dataset=place_path(options.pop("path", None), context.environment),
        format=Format.HUDI,
        columns=without_internal_columns(columns),
        partitioning=identity_partitioning(_parse_partitions(options.get(_PARTITIONS))),
        primary_key=parse_key(options.get(_KEY)),
        options=StringMap(options),
    )
    kind, extent = _kind_of_mode(node.args.get("mode"), options.get(_OPERATION, ""))
    return WriteTarget(sink, None, kind, extent, versioned=True, hints=session_hints(context))


def _parse_partitions(text: str | None) -> list[str]:
    """With a key generator that takes it, each has its type behind a colon."""
    return [name.strip().partition(":")[0] for name in (text or "").split(",") if name.strip()]


def _kind_of_mode(mode: str | None, operation: str) -> tuple[CommitKind, OverwriteScope]:
    """Where partitions are overwritten, the mode says nothing more; else it removes the table before it writes."""
    if mode == "Overwrite" and operation.lower() != "insert_overwrite":
        return CommitKind.OVERWRITE, OverwriteScope.ALL
    return CommitKind.APPEND, OverwriteScope.UNKNOWN
