"""What is written: a table by its options, or one of a catalog, which the statement may make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import CommitKind, Extent, Format, Output, ShapedSink
from headwater.events.base import Texts
from headwater.listeners.capture.formats.files.written import was_made
from headwater.listeners.capture.formats.jdbc.places import Place, place_of
from headwater.listeners.capture.formats.jdbc.sources import is_in_catalog, options_of
from headwater.listeners.capture.formats.protocol import Outcome, Target
from headwater.listeners.capture.formats.relations import columns_of, options_elsewhere, table_name, v2_name
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Statement

_SOURCE: Final = "org.apache.spark.sql.execution.datasources.jdbc.JdbcRelationProvider"
_CATALOG: Final = "jdbc"
_MODES: Final[Mapping[str, tuple[CommitKind, Extent]]] = {
    "Append": (CommitKind.APPEND, Extent.NOTHING),
    "Overwrite": (CommitKind.OVERWRITE, Extent.ALL),
    "ErrorIfExists": (CommitKind.CREATE, Extent.ALL),
    "Ignore": (CommitKind.CREATE, Extent.ALL),
}


def sink(node: Node, plan: Plan, scene: Scene) -> Target | None:
    if node.name == "SaveIntoDataSourceCommand":
        return _saved(node, scene)
    if node.name == "InsertIntoDataSourceCommand":
        return _inserted(node, plan, scene)
    options = options_elsewhere(node, _CATALOG)
    if options is not None:
        return _made_elsewhere(node, options, scene)
    if node.name in {"CreateTableAsSelect", "ReplaceTableAsSelect"}:
        return _to_be_made(node, plan, scene)
    return _in_catalog(node, node.args.get("identifier"), plan, scene) if is_in_catalog(node) else None


def _saved(node: Node, scene: Scene) -> Target | None:
    if (node.args.get("dataSource") or {}).get("class") != _SOURCE:
        return None
    mode = node.args.get("mode", "")
    kind, replaced = _MODES.get(mode, (CommitKind.UNKNOWN, Extent.UNKNOWN))
    place = place_of(node.args.get("options", {}), scene.site)
    return Target(_shaped(place), kind=kind, replaced=replaced, hints={"mode": mode})


def _inserted(node: Node, plan: Plan, scene: Scene) -> Target | None:
    """Into a table or view that was made USING jdbc."""
    index = node.plan_of("logicalRelation")
    options = None if index is None else options_of(plan.nodes[index])
    if index is None or options is None:
        return None
    relation = plan.nodes[index]
    kind, replaced = _MODES["Overwrite" if node.args.get("overwrite") else "Append"]
    name = table_name(relation.args.get("catalogTable"))
    place = _shaped(place_of(options, scene.site))
    opaque = place.opaque if name is None else None
    columns = columns_of(plan, relation.output)
    shaped = place.model_copy(update={"table": name, "opaque": opaque, "columns": columns})
    return Target(shaped, None if name is None else scene.session_catalog(), kind, replaced, node=index)


def _made_elsewhere(node: Node, options: Mapping[str, str], scene: Scene) -> Target:
    """A table of Spark's catalog that is made from a query, or `saveAsTable` adds to."""
    place = _shaped(place_of(options, scene.site))
    shaped = place.model_copy(update={"table": table_name(node.args["table"]), "opaque": None})
    kind, replaced = _MODES["ErrorIfExists"]
    hints = {"mode": node.args.get("mode"), "in catalog": True}
    return Target(shaped, scene.session_catalog(), kind, replaced, hints=hints)


def _shaped(place: Place) -> ShapedSink:
    return ShapedSink(dataset=place.dataset, opaque=place.opaque, format=Format.JDBC, options=Texts(place.options))


def _to_be_made(node: Node, plan: Plan, scene: Scene) -> Target | None:
    index = node.plan_of("name")
    name = None if index is None else plan.nodes[index]
    if name is None or "catalog" not in name.args or "identifier" not in name.args:
        return None
    if scene.catalog(name.args["catalog"]).context.factory != _CATALOG:
        return None
    return _in_catalog(name, name.args["identifier"], plan, scene)


def _in_catalog(node: Node, identifier: Mapping[str, Any] | None, plan: Plan, scene: Scene) -> Target | None:
    if identifier is None:
        return None
    catalog = scene.catalog(node.args["catalog"])
    name = v2_name(catalog.name, identifier)
    shaped = ShapedSink(
        dataset=scene.dataset(catalog, name, None),
        table=name,
        format=Format.JDBC,
        columns=columns_of(plan, node.output),
    )
    return Target(shaped, catalog, node=node.index)


def written(target: Target, statement: Statement) -> Outcome:
    """How many rows were written, Spark doesn't count."""
    if target.hints.get("mode") == "Ignore" and not any("jdbc" in hint for hint in statement.facts.hints):
        return Outcome()  # the table was there
    sink = target.sink
    kind, replaced = _done(target, statement)
    output = Output(
        dataset=sink.dataset,
        table=sink.table,
        opaque=sink.opaque,
        format=Format.JDBC,
        commit_kind=kind,
        replaced=replaced,
    )
    return Outcome((output,))


def _done(target: Target, statement: Statement) -> tuple[CommitKind, Extent]:
    """`saveAsTable` adds to what is there; what its catalog hasn't, it makes anew in the database too."""
    if not target.hints.get("in catalog") or target.hints.get("mode") != "Append":
        return target.kind, target.replaced
    made = was_made(statement)
    if made is None:
        return CommitKind.UNKNOWN, Extent.UNKNOWN
    return (target.kind, target.replaced) if made else _MODES["Append"]
