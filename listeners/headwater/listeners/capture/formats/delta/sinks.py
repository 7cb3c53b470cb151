"""What is written: a relation, a path that a data source is given, or a table that the statement makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import Format, TableName
from headwater.events.base import StringMap
from headwater.events.identity.text import lower_keys
from headwater.events.jobs import CommitKind, OverwriteScope, SinkSchema
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.context import CaptureContext, SessionNamedCatalog
from headwater.listeners.capture.formats.delta.table_refs import (
    DeltaTableRef,
    dataset_at,
    find_table_ref,
    parse_partitioning,
    relation_below,
)
from headwater.listeners.capture.formats.protocol import WriteTarget
from headwater.listeners.capture.formats.relations import columns_of, table_name, v2_name
from headwater.listeners.capture.plan.tree import Plan, PlanNode

_PROVIDER: Final = "delta"
_SOURCE: Final = "org.apache.spark.sql.delta.sources.DeltaDataSource"
CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_BY_QUERY: Final = frozenset({"CreateTableAsSelect", "ReplaceTableAsSelect"})
_PATH_NAMESPACE: Final = ["delta"]


def sink_of(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
    if node.name in _BY_QUERY:
        return _create_as_select(node, plan, context)
    if node.name == "SaveIntoDataSourceCommand":
        return _save_target(node, plan, context)
    ref = find_table_ref(node, plan)
    return None if ref is None or ref.changes else target_of_ref(ref, node, context)


def target_of_ref(ref: DeltaTableRef, node: PlanNode, context: CaptureContext) -> WriteTarget:
    sink = SinkSchema(
        dataset=ref.dataset(context),
        table=ref.table,
        generation=ref.generation,
        format=Format.DELTA,
        columns=ref.columns,
        partitioning=ref.partitioning,
    )
    return WriteTarget(
        sink,
        _catalog(node, ref.table, context),
        versioned=True,
        node=node.index,
        generated=ref.generated,
        hints=_hints(ref.path, context),
    )


def created_table_target(
    table: Mapping[str, Any], path: str | None, plan: Plan, context: CaptureContext, *, has_rows: bool
) -> WriteTarget:
    """The table that a command of Delta's makes, as its CatalogTable tells it."""
    location = path or table.get("storage", {}).get("location")
    is_path = table.get("database") in {None, "delta"} and "/" in table["name"]
    sink = SinkSchema(
        dataset=dataset_at(location, context),
        table=None if is_path else table_name(table),
        format=Format.DELTA,
        columns=columns_from_schema_json(plan.types[table["schema"]]),
    )
    hints = {**_hints(location, context), "has_rows": has_rows}
    catalog = None if is_path else context.session_catalog()
    return WriteTarget(sink, catalog, CommitKind.CREATE, OverwriteScope.ALL, versioned=True, hints=hints)


def converted_table_target(
    path: str | None, identifier: Mapping[str, Any] | None, context: CaptureContext
) -> WriteTarget:
    """A path, or a table whose path only the commit tells, that becomes Delta's as a whole."""
    name = None if identifier is None else table_name({**identifier, "name": identifier["table"]})
    sink = SinkSchema(dataset=dataset_at(path, context), table=name, format=Format.DELTA)
    catalog = None if name is None else context.session_catalog()
    return WriteTarget(sink, catalog, replaced=OverwriteScope.ALL, versioned=True, hints=_hints(path, context))


def _create_as_select(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
    name = relation_below(plan, node.plan_of("name"))
    if name is None or "identifier" not in name.args:
        return None
    catalog = context.catalog(name.args["catalog"])
    spec = node.args.get("tableSpec") or {}
    if not is_delta(catalog, spec.get("provider"), name.args["identifier"]):
        return None
    identifier, location = name.args["identifier"], spec.get("location")
    is_path = identifier["namespace"] == _PATH_NAMESPACE and "/" in identifier["name"]
    location = location or (identifier["name"] if is_path else None)
    query = node.plan_of("query")
    sink = SinkSchema(
        dataset=dataset_at(location, context),
        table=None if is_path else v2_name(catalog.name, identifier),
        format=Format.DELTA,
        columns=() if query is None else columns_of(plan, plan.nodes[query].output),
        partitioning=parse_partitioning(node.args.get("partitioning") or ()),
        options=StringMap(lower_keys(node.args.get("writeOptions") or {})),
    )
    return WriteTarget(
        sink,
        None if is_path else catalog,
        CommitKind.CREATE,
        OverwriteScope.ALL,
        versioned=True,
        hints={**_hints(location, context), "may_overwrite": bool(node.args.get("orCreate"))},
    )


def is_delta(catalog: SessionNamedCatalog, provider: str | None, identifier: Mapping[str, Any]) -> bool:
    """Whether a table that is made in this catalog is one of Delta's. Without a provider it is what the session's
    default says, which the plan doesn't show: the catalog's properties then have it."""
    if catalog.class_name != CATALOG:
        return False
    return (provider or "").lower() == _PROVIDER or identifier["namespace"] == _PATH_NAMESPACE


def _save_target(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget | None:
    if (node.args.get("dataSource") or {}).get("class") != _SOURCE:
        return None
    options = {key.lower(): text for key, text in node.args.get("options", {}).items()}
    query, path = node.plan_of("query"), options.pop("path", None)
    overwrite = node.args.get("mode") == "Overwrite"
    sink = SinkSchema(
        dataset=dataset_at(path, context),
        format=Format.DELTA,
        columns=() if query is None else columns_of(plan, plan.nodes[query].output),
        options=StringMap(options),
    )
    kind = CommitKind.OVERWRITE if overwrite else CommitKind.APPEND
    extent = OverwriteScope.UNKNOWN if overwrite else OverwriteScope.NOTHING
    return WriteTarget(sink, None, kind, extent, versioned=True, hints=_hints(path, context))


def _hints(path: str | None, context: CaptureContext) -> dict[str, Any]:
    return {"path": path, "environment": context.environment}


def _catalog(node: PlanNode, table: TableName | None, context: CaptureContext) -> SessionNamedCatalog | None:
    if table is None:
        return None
    reference = node.args.get("catalog")
    return (
        context.catalog(reference)
        if isinstance(reference, Mapping) and "catalog" in reference
        else context.session_catalog()
    )
