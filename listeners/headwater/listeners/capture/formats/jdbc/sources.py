"""What a relation reads: a table by its options, or one of a catalog."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.events import Format, ShapedSource
from headwater.events.base import Texts
from headwater.listeners.capture.formats.jdbc.places import place_of
from headwater.listeners.capture.formats.protocol import Described
from headwater.listeners.capture.formats.relations import columns_of, table_name, v2_name
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import Scene


def source(node: Node, plan: Plan, scene: Scene) -> Described | None:
    if is_in_catalog(node):
        catalog = scene.catalog(node.args["catalog"])
        name = v2_name(catalog.name, node.args["identifier"])
        dataset = scene.dataset(catalog, name, None)
        shaped = ShapedSource(dataset=dataset, table=name, format=Format.JDBC, columns=columns_of(plan, node.output))
        return Described(node.index, shaped)
    options = options_of(node)
    if options is None:
        return None
    place, table = place_of(options, scene.site), table_name(node.args.get("catalogTable"))
    shaped = ShapedSource(
        dataset=place.dataset,
        opaque=place.opaque if table is None else None,
        table=table,
        format=Format.JDBC,
        columns=columns_of(plan, node.output),
        options=Texts(place.options),
    )
    return Described(node.index, shaped)


def is_in_catalog(node: Node) -> bool:
    table = node.args.get("table")
    return bool(node.args.get("catalog")) and isinstance(table, Mapping) and "jdbc" in table


def options_of(node: Node) -> Mapping[str, str] | None:
    """Of a relation of the first kind; None where it is none of a database."""
    relation = node.args.get("relation")
    if node.name != "LogicalRelation" or not isinstance(relation, Mapping):
        return None
    found: Mapping[str, str] | None = relation.get("jdbc")
    return found
