"""What a command writes, as its plan tells it: a table that is there, or one that it makes."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headwater.events import Format, TableName
from headwater.events.identity.text import joined
from headwater.events.jobs import CommitKind, OverwriteScope, SinkSchema
from headwater.listeners.capture.context import CaptureContext, SessionNamedCatalog
from headwater.listeners.capture.formats.iceberg.table_refs import IcebergTableRef, dataset_at, find_table_ref
from headwater.listeners.capture.formats.iceberg.tables import partitioning_of, primary_key_of, transform_of
from headwater.listeners.capture.formats.protocol import SinkWrite, StatementWrites, WriteResult, WriteTarget
from headwater.listeners.capture.formats.relations import columns_of
from headwater.listeners.capture.plan.tree import Plan, PlanNode

_CREATE_AS_SELECT: Final = frozenset({"CreateTableAsSelect", "ReplaceTableAsSelect"})
_ANY_SCHEMA: Final = "write.spark.accept-any-schema"
"""Analysis leaves a query as it is then, and Iceberg finds the columns by their names."""
_PACKAGE: Final = "org.apache.iceberg.spark."
_SESSION: Final = f"{_PACKAGE}SparkSessionCatalog"


def sink_of(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
    return (
        _created_table_target(node, plan, context)
        if node.name in _CREATE_AS_SELECT
        else _existing_target(node, plan, context)
    )


def _existing_target(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
    ref = find_table_ref(node, context)
    if ref is None:
        return None
    if ref.metadata:
        return _is_plain_table(ref)
    sink = SinkSchema(
        dataset=ref.dataset,
        table=ref.table,
        generation=ref.generation,
        format=Format.ICEBERG,
        branch=ref.branch,
        main=ref.branch is None,
        columns=columns_of(plan, node.output),
        partitioning=partitioning_of(ref.reported),
        primary_key=primary_key_of(ref.reported),
    )
    properties = node.args["table"].get("properties", {})
    hints = {
        "location": ref.reported["location"],
        "name": ref.reported["name"],
        "branch": ref.branch,
        "by_name": properties.get(_ANY_SCHEMA) == "true",
    }
    return WriteTarget(sink, ref.catalog, versioned=True, node=node.index, hints=hints)


def _created_table_target(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
    reference = node.plan_of("name")
    name = None if reference is None else plan.nodes[reference]
    if name is None or "identifier" not in name.args or not name.args.get("catalog"):
        return None
    catalog = context.catalog(name.args["catalog"])
    specification = node.args.get("tableSpec", {})
    if not is_iceberg(catalog, specification.get("provider")):
        return None
    spaces, last = name.args["identifier"]["namespace"], name.args["identifier"]["name"]
    path = f"{'/'.join(spaces)}/{last}" if "/" in "".join(spaces) else None
    table = None if path else TableName(catalog=catalog.name, database=joined(spaces), table=last)
    sink = SinkSchema(
        dataset=dataset_at(path or specification.get("location"), catalog, table, context),
        table=table,
        format=Format.ICEBERG,
        partitioning=tuple(transform_of(transform) for transform in node.args.get("partitioning", ())),
    )
    return WriteTarget(sink, catalog, CommitKind.CREATE, OverwriteScope.ALL, versioned=True, hints={"scene": context})


def _is_plain_table(ref: IcebergTableRef) -> WriteTarget:
    """Compaction of delete files writes through `t.position_deletes`: it commits by itself, not by this write."""
    sink = SinkSchema(dataset=None, table=ref.table, format=Format.ICEBERG, opaque=ref.reported["metadata"])
    return WriteTarget(sink, ref.catalog, hints={"by_name": True}, result=lambda *_: WriteResult())


def truncate_write(node: PlanNode, plan: Plan, context: CaptureContext) -> StatementWrites | None:
    """TRUNCATE TABLE; of another format it is no write that is known here."""
    index = node.plan_of("table")
    found = None if index is None else _existing_target(plan.nodes[index], plan, context)
    if found is None:
        return StatementWrites(())
    return StatementWrites((SinkWrite(replace(found, kind=CommitKind.TRUNCATE, replaced=OverwriteScope.ALL)),))


def is_iceberg(catalog: SessionNamedCatalog, provider: str | None) -> bool:
    """Whether a table made in this catalog is Iceberg's. Its session catalog takes others too."""
    if catalog.class_name == _SESSION:
        return provider is None or provider.lower() == "iceberg"
    return catalog.class_name.startswith(_PACKAGE)
