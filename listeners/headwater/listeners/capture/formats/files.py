"""Parquet, ORC, CSV, JSON, text and whatever else is files in directories, in Spark's own catalog or by path.

They have no versions: neither a read nor a write names one, and that is no gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import (
    AlterTable,
    CommitKind,
    Extent,
    Format,
    Output,
    ShapedSink,
    ShapedSource,
    StartReason,
    TableName,
    Transform,
)
from headwater.events.base import Texts
from headwater.events.identity import IdentityError, dataset_of_path
from headwater.events.names import DatasetId
from headwater.events.tables import Column
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.formats.loads import LOAD, loaded_files, located
from headwater.listeners.capture.formats.protocol import Begins, Described, Outcome, Target, Version
from headwater.listeners.capture.formats.relations import columns_of, stream_options, table_name
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Facts, Statement, Took

_FORMATS: Final[Mapping[str, Format]] = {
    "parquet": Format.PARQUET,
    "orc": Format.ORC,
    "csv": Format.CSV,
    "json": Format.JSON,
    "text": Format.TEXT,
    "avro": Format.AVRO,
    "xml": Format.XML,
    "binaryfile": Format.BINARY,
    "hive": Format.HIVE,
}

_STREAMED: Final = frozenset(_FORMATS.values()) - {Format.HIVE}


def format_of(word: str | None) -> Format:
    """By a provider's name, or the class of a file format: `org.apache…parquet.ParquetFileFormat`."""
    if not word:
        return Format.UNKNOWN
    short = word.rpartition(".")[2].lower().removesuffix("fileformat").removesuffix("datasource").removesuffix("v2")
    return _FORMATS.get(short, Format.OTHER)


class Files:
    """Tables of the session catalog and paths, as sources and sinks."""

    @property
    def format(self) -> Format:
        return Format.PARQUET

    def source(self, node: Node, plan: Plan, scene: Scene) -> Described | None:
        if node.name == LOAD:
            return loaded_files(node, scene)
        if node.name == "HiveTableRelation":
            return _described(node, plan, scene, node.args.get("tableMeta"), None)
        if node.name == "StreamingRelation":
            return _streamed(node, plan, scene)
        if node.name != "LogicalRelation":
            return None
        relation = node.args.get("relation", {})
        if "fileFormat" not in relation:
            return None
        return _described(node, plan, scene, node.args.get("catalogTable"), relation)

    def sink(self, node: Node, plan: Plan, scene: Scene) -> Target | None:
        if node.name == "InsertIntoHadoopFsRelationCommand":
            return _files_target(node, plan, scene)
        if node.name in {"CreateDataSourceTableAsSelectCommand", "CreateHiveTableAsSelectCommand"}:
            table = node.args.get("table") or node.args.get("tableDesc")
            return None if table is None else _made_target(table, node.args.get("mode"), plan, scene)
        if node.name == "InsertIntoHiveTable":
            return _hive_target(node, plan, scene)
        if node.name == "WriteToMicroBatchDataSourceV1":
            return _stream_target(node, plan, scene)
        return None

    def took(self, source: Described, node: Node, took: Took, facts: Facts) -> tuple[Version, ...]:
        """How far a stream has come is counted in its checkpoint: it is nobody else's version of the files."""
        return (Version(changes=True),)

    def begins(self, source: Described, node: Node, took: Took) -> Begins:
        return Begins(reason=StartReason.EARLIEST)

    def reads(self, source: Described, plan: Plan, facts: Facts) -> tuple[Version, ...]:
        return (Version(),)

    def written(self, target: Target, statement: Statement) -> Outcome:
        if "written" in target.hints:
            found: Outcome = target.hints["written"](target, statement)
            return found
        kind, replaced = _done(target, statement)
        rows, size = _counted(target, statement)
        if kind is None or (rows == 0 and replaced is Extent.NOTHING):
            return Outcome()
        sink = _found(target, statement)
        place = {
            name: getattr(sink, name) for name in ("dataset", "table", "life", "format", "branch", "main", "opaque")
        }
        output = Output(**place, commit_kind=kind, replaced=replaced, rows=rows, bytes=size)
        return Outcome((output,), sink=sink)

    def evolved(self, target: Target, statement: Statement, scene: Scene) -> tuple[AlterTable, ...]:
        return ()


def _done(target: Target, statement: Statement) -> tuple[CommitKind | None, Extent]:
    """What a command that may make its table did: nothing where IF NOT EXISTS found it, and rows are only added where
    `saveAsTable` did. Whether the table was made, Spark's own catalog tells."""
    session = statement.facts.looked_up.get("session", {})
    if target.replaced is Extent.ALL and session.get("dynamic"):
        return target.kind, Extent.PART
    mode = target.hints.get("mode")
    made = _was_made(statement)
    wrote = any("command" in hint for hint in statement.facts.hints)
    if mode == "Ignore" and (made is False or (made is None and not wrote)):
        return None, Extent.NOTHING
    if mode != "Append" or made:
        return target.kind, target.replaced
    return (CommitKind.UNKNOWN, Extent.UNKNOWN) if made is None else (CommitKind.APPEND, Extent.NOTHING)


def _was_made(statement: Statement) -> bool | None:
    told = statement.facts.looked_up.get("session", {})
    events = (*statement.facts.noted, *told.get("heard", ()))
    if any(each.get("event") == "CreateTableEvent" for each in events):
        return True
    return False if told.get("certain") else None


def _found(target: Target, statement: Statement) -> ShapedSink:
    """A table that the statement made is where the write nested in it went, else where its catalog has it."""
    scene: Scene | None = target.hints.get("scene")
    if scene is None:
        return target.sink
    paths = [hint["outputPath"] for hint in statement.facts.hints if "outputPath" in hint]
    if len(paths) == 1:
        return target.sink.model_copy(update={"dataset": dataset_of_path(paths[0], scene.site)})
    return located(target.sink, statement, scene)


FORMAT: Final = Files()


def location_of_table(table: Mapping[str, Any] | None) -> str | None:
    """Where the catalog says that a table is."""
    return None if table is None else table.get("storage", {}).get("location")


def _described(
    node: Node, plan: Plan, scene: Scene, table: Mapping[str, Any] | None, relation: Mapping[str, Any] | None
) -> Described:
    paths = [] if relation is None else relation.get("paths", [])
    location = location_of_table(table) or (paths[0] if paths else None)
    name = table_name(table)
    partitions = table.get("partitions", []) if table else _field_names(plan, relation)
    word = (table or {}).get("provider") or (relation or {}).get("fileFormat")
    source = ShapedSource(
        dataset=_dataset(scene, name, location),
        table=name,
        format=format_of(word),
        columns=columns_of(plan, node.output),
        partitioning=tuple(Transform(columns=((each,),)) for each in partitions),
        options=Texts(relation.get("options", {}) if relation and table is None else {}),
    )
    return Described(node.index, source)


def _streamed(node: Node, plan: Plan, scene: Scene) -> Described | None:
    """Files that are read as they come."""
    told = node.args.get("dataSource") or {}
    word, table = str(told.get("className", "")), told.get("catalogTable")
    if format_of(word) not in _STREAMED:
        return None
    options = stream_options(node)
    location = location_of_table(table) or options.pop("path", None) or next(iter(told.get("paths", ())), None)
    name = table_name(table)
    source = ShapedSource(
        dataset=_dataset(scene, name, location),
        table=name,
        format=format_of(word),
        columns=columns_of(plan, node.output),
        partitioning=tuple(Transform(columns=((each,),)) for each in told.get("partitionColumns") or ()),
        options=Texts({} if table else options),
    )
    return Described(node.index, source)


def _stream_target(node: Node, plan: Plan, scene: Scene) -> Target | None:
    told = node.args.get("sink") or {}
    if "fileFormat" not in told:
        return None
    name = table_name(node.args.get("catalogTable"))
    sink = ShapedSink(
        dataset=_dataset(scene, name, told["path"]),
        table=name,
        format=format_of(told["fileFormat"]),
        partitioning=tuple(Transform(columns=((each,),)) for each in told.get("partitions", ())),
    )
    return Target(sink, scene.session_catalog() if name else None, CommitKind.APPEND, Extent.NOTHING)


def _files_target(node: Node, plan: Plan, scene: Scene) -> Target:
    table = node.args.get("catalogTable")
    name = table_name(table)
    partitions = [plan.attribute(-1 - ref).name for ref in node.expressions_of("partitionColumns") if ref < 0]
    word = table.get("provider") if table else node.args.get("fileFormat", {}).get("class")
    location = location_of_table(table) or node.args["outputPath"]
    columns = _table_columns(plan, table) or columns_of(plan, plan.nodes[node.inputs[0]].output)
    sink = ShapedSink(
        dataset=_dataset(scene, name, location),
        table=name,
        format=format_of(word),
        columns=columns,
        partitioning=tuple(Transform(columns=((each,),)) for each in partitions),
        options=Texts({} if table else node.args.get("options", {})),
    )
    overwrite = node.args.get("mode") == "Overwrite"
    return Target(
        sink,
        scene.session_catalog() if name else None,
        CommitKind.OVERWRITE if overwrite else CommitKind.APPEND,
        _extent(node, overwrite),
    )


def _extent(node: Node, overwrite: bool) -> Extent:
    if not overwrite:
        return Extent.NOTHING
    return Extent.PART if node.args.get("staticPartitions") else Extent.ALL


def _made_target(table: Mapping[str, Any], mode: str | None, plan: Plan, scene: Scene) -> Target:
    name = table_name(table)
    sink = ShapedSink(
        dataset=_dataset(scene, name, location_of_table(table)),
        table=name,
        format=format_of(table.get("provider")),
        columns=_table_columns(plan, table),
        partitioning=tuple(Transform(columns=((each,),)) for each in table.get("partitions", [])),
    )
    hints = {"scene": scene, "mode": mode}
    return Target(sink, scene.session_catalog(), CommitKind.CREATE, Extent.ALL, hints=hints)


def _hive_target(node: Node, plan: Plan, scene: Scene) -> Target:
    table = node.args["table"]
    name = table_name(table)
    sink = ShapedSink(
        dataset=_dataset(scene, name, location_of_table(table)),
        table=name,
        format=Format.HIVE,
        columns=_table_columns(plan, table),
        partitioning=tuple(Transform(columns=((each,),)) for each in table.get("partitions", [])),
    )
    overwrite = bool(node.args.get("overwrite"))
    kind = CommitKind.OVERWRITE if overwrite else CommitKind.APPEND
    extent = Extent.NOTHING if not overwrite else Extent.PART if node.args.get("partition") else Extent.ALL
    return Target(sink, scene.session_catalog(), kind, extent)


def _table_columns(plan: Plan, table: Mapping[str, Any] | None) -> tuple[Column, ...]:
    return () if table is None else columns_from_schema_json(plan.types[table["schema"]])


def _field_names(plan: Plan, relation: Mapping[str, Any] | None) -> list[str]:
    if relation is None or "partitionSchema" not in relation:
        return []
    return [field["name"] for field in plan.schema(relation["partitionSchema"])["fields"]]


def _dataset(scene: Scene, name: TableName | None, location: str | None) -> DatasetId | None:
    if name is not None:
        return scene.dataset(scene.session_catalog(), name, location)
    try:
        return None if location is None else dataset_of_path(location, scene.site)
    except IdentityError:
        return None


def _counted(target: Target, statement: Statement) -> tuple[int | None, int | None]:
    """Rows and bytes of the command itself, or of the write nested in it."""
    for told in (statement.facts.metrics, *(hint.get("metrics", {}) for hint in reversed(statement.facts.hints))):
        if "numOutputRows" in told:
            return told["numOutputRows"], told.get("numOutputBytes")
    return None, None
