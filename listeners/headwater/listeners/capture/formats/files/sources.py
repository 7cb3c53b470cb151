"""Files that are read: as a table, by path, as a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from headwater.events import DatasetId, Format
from headwater.events.base import StringMap
from headwater.events.identity import Environment, IdentityError, dataset_of_path, glob_root, under_root
from headwater.events.identity.text import lower_keys
from headwater.events.jobs import SourceSchema
from headwater.events.tables import Transform
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.files.locations import FORMATS, dataset_of, format_of, location_of_table
from headwater.listeners.capture.formats.protocol import ReadVersion, SourceRelation, sources_of_rdds
from headwater.listeners.capture.formats.relations import columns_of, stream_options, table_name
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import FilePaths, Statement

_STREAM_FORMATS: Final = frozenset(FORMATS.values()) - {Format.HIVE}


def describe_relation(
    node: PlanNode,
    plan: Plan,
    context: CaptureContext,
    table: Mapping[str, Any] | None,
    relation: Mapping[str, Any] | None,
) -> SourceRelation:
    paths, name = FilePaths.parse(relation or {}), table_name(table)
    location = location_of_table(table) or next(iter(paths.directories if name else ()), None)
    partitions = table.get("partitions", []) if table else _field_names(plan, relation)
    word = (table or {}).get("provider") or (relation or {}).get("fileFormat")
    source = SourceSchema(
        dataset=dataset_of(context, name, location),
        table=name,
        format=format_of(word, context.formats),
        columns=columns_of(plan, node.output),
        partitioning=tuple(Transform(columns=((name,),)) for name in partitions),
        options=StringMap(relation.get("options", {}) if relation and table is None else {}),
    )
    described = SourceRelation(node.index, source)
    first, *others = (with_paths(described, paths, context.environment) if location is None else ()) or (described,)
    return replace(first, also=tuple(others))


def describe_rdd(node: PlanNode, plan: Plan, context: CaptureContext) -> SourceRelation | None:
    """The files and tables that an RDD was made from and, where there may be more, the RDD as an opaque source; None
    where nothing shows. A function of the user's made its columns: they are none of theirs."""
    columns = columns_of(plan, node.output)
    hidden = frozenset(column.name for column in columns)
    described = SourceRelation(node.index, SourceSchema(dataset=None), hidden=hidden)
    found = with_paths(described, FilePaths.parse(node.args), context.environment)
    known = [source for source in found if source.source.dataset is not None]
    known += [
        SourceRelation(
            node.index,
            rdd.source,
            versioned=rdd.version != ReadVersion(),
            hints={"version": rdd.version},
            hidden=hidden,
        )
        for rdd in sources_of_rdds(node.args.get("ofFormats", ()), context)
    ]
    if not known:
        return None
    if not node.args.get("isWhole") or len(known) < len(found):
        known.append(SourceRelation(node.index, SourceSchema(dataset=None, opaque=node.name, columns=columns)))
    return replace(known[0], also=tuple(known[1:]))


def with_paths(described: SourceRelation, paths: FilePaths, environment: Environment) -> tuple[SourceRelation, ...]:
    """The same relation, once for each dataset that these directories are."""
    options = described.source.options
    datasets = tuple(dict.fromkeys(_dataset_at(path, options, environment) for path in paths.directories))
    update: dict[str, Any] = {"opaque": None}
    if paths.summary is not None and "path" not in options:
        update["options"] = StringMap({**options, "paths": paths.summary})
    return tuple(
        replace(described, source=described.source.model_copy(update={**update, "dataset": dataset}))
        for dataset in datasets
    )


def _dataset_at(path: str, options: Mapping[str, str], environment: Environment) -> DatasetId | None:
    """A directory below the option `basePath` is a partition of the table there."""
    base = lower_keys(options).get("basepath")
    try:
        found = dataset_of_path(path, environment)
        table = dataset_of_path(base, environment) if base else None
    except IdentityError:
        return None
    return table if table is not None and under_root(found, table) else found


def describe_stream(node: PlanNode, plan: Plan, context: CaptureContext) -> SourceRelation | None:
    """Files that are read as they come. What a pattern means shows in each micro-batch."""
    fields = node.args.get("dataSource") or {}
    word, table = str(fields.get("className", "")), fields.get("catalogTable")
    if format_of(word, context.formats) not in _STREAM_FORMATS:
        return None
    options = stream_options(node)
    location, name = location_of_table(table), table_name(table)
    path = options.pop("path", None) or next(iter(fields.get("paths", ())), None)
    if location is None and path is not None:
        dataset = _dataset_at(path, options, context.environment)
    else:
        dataset = dataset_of(context, name, location)
    pattern = path if location is None and dataset is not None and glob_root(dataset.name)[1] else None
    source = SourceSchema(
        dataset=None if pattern else dataset,
        table=name,
        format=format_of(word, context.formats),
        columns=columns_of(plan, node.output),
        partitioning=tuple(Transform(columns=((name,),)) for name in fields.get("partitionColumns") or ()),
        options=StringMap({} if table else {**options, "path": pattern} if pattern else options),
        opaque=f"files: {pattern}" if pattern else None,
    )
    return SourceRelation(node.index, source, hints={"pattern": pattern, "environment": context.environment})


def paths_of_batch(source: SourceRelation, statement: Statement) -> tuple[SourceRelation, ...]:
    """What the pattern of a stream meant in this micro-batch; none where it has no pattern, or where nothing tells."""
    if statement.stream is None or source.hints.get("pattern") is None:
        return ()
    given = (statement.stream.offsets or {}).get(source.node, ())
    found = (
        with_paths(source, offsets.paths, source.hints["environment"]) for offsets in given if offsets.paths is not None
    )
    return tuple({relation.source: relation for relations in found for relation in relations}.values())


def _field_names(plan: Plan, relation: Mapping[str, Any] | None) -> list[str]:
    if relation is None or "partitionSchema" not in relation:
        return []
    return [field["name"] for field in plan.schema(relation["partitionSchema"])["fields"]]
