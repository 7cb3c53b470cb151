"""What a command writes, as its shape tells it: a table that is there, or one that it makes."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headwater.events import CommitKind, Extent, Format, ShapedSink, TableName
from headwater.events.identity.text import joined
from headwater.listeners.capture.commands import Part, Write
from headwater.listeners.capture.formats.iceberg.places import Place, dataset_at, place_of
from headwater.listeners.capture.formats.iceberg.tables import partitioning_of, primary_key_of, transform_of
from headwater.listeners.capture.formats.protocol import Outcome, Target
from headwater.listeners.capture.formats.relations import columns_of
from headwater.listeners.capture.plan.tree import Node, Plan
from headwater.listeners.capture.scene import NamedCatalog, Scene

_MAKERS: Final = frozenset({"CreateTableAsSelect", "ReplaceTableAsSelect"})
_ANY_SCHEMA: Final = "write.spark.accept-any-schema"
"""Analysis leaves a query as it is then, and Iceberg finds the columns by their names."""
_PACKAGE: Final = "org.apache.iceberg.spark."
_SESSION: Final = f"{_PACKAGE}SparkSessionCatalog"


def sink_of(node: Node, plan: Plan, scene: Scene) -> Target | None:
    return _made(node, plan, scene) if node.name in _MAKERS else _there(node, plan, scene)


def _there(node: Node, plan: Plan, scene: Scene) -> Target | None:
    place = place_of(node, scene)
    if place is None:
        return None
    if place.metadata:
        return _about_a_table(place)
    sink = ShapedSink(
        dataset=place.dataset,
        table=place.table,
        life=place.life,
        format=Format.ICEBERG,
        branch=place.branch,
        main=place.branch is None,
        columns=columns_of(plan, node.output),
        partitioning=partitioning_of(place.told),
        primary_key=primary_key_of(place.told),
    )
    properties = node.args["table"].get("properties", {})
    hints = {
        "location": place.told["location"],
        "name": place.told["name"],
        "branch": place.branch,
        "by_name": properties.get(_ANY_SCHEMA) == "true",
    }
    return Target(sink, place.catalog, versioned=True, node=node.index, hints=hints)


def _made(node: Node, plan: Plan, scene: Scene) -> Target | None:
    reference = node.plan_of("name")
    name = None if reference is None else plan.nodes[reference]
    if name is None or "identifier" not in name.args or not name.args.get("catalog"):
        return None
    catalog = scene.catalog(name.args["catalog"])
    specification = node.args.get("tableSpec", {})
    if not makes(catalog, specification.get("provider")):
        return None
    spaces, last = name.args["identifier"]["namespace"], name.args["identifier"]["name"]
    path = f"{'/'.join(spaces)}/{last}" if "/" in "".join(spaces) else None
    table = None if path else TableName(catalog=catalog.name, database=joined(spaces) if spaces else "", table=last)
    sink = ShapedSink(
        dataset=dataset_at(path or specification.get("location"), catalog, table, scene),
        table=table,
        format=Format.ICEBERG,
        partitioning=tuple(transform_of(each) for each in node.args.get("partitioning", ())),
    )
    return Target(sink, catalog, CommitKind.CREATE, Extent.ALL, versioned=True, hints={"scene": scene})


def _about_a_table(place: Place) -> Target:
    """Compaction of delete files writes through `t.position_deletes`: it commits by itself, not by this write."""
    sink = ShapedSink(dataset=None, table=place.table, format=Format.ICEBERG, opaque=place.told["metadata"])
    return Target(sink, place.catalog, hints={"written": lambda *_: Outcome(), "by_name": True})


def truncates(node: Node, plan: Plan, scene: Scene) -> Write | None:
    """TRUNCATE TABLE; of another format it is no write that is known here."""
    index = node.plan_of("table")
    found = None if index is None else _there(plan.nodes[index], plan, scene)
    if found is None:
        return Write(())
    return Write((Part(replace(found, kind=CommitKind.TRUNCATE, replaced=Extent.ALL)),))


def makes(catalog: NamedCatalog, provider: str | None) -> bool:
    """Whether a table made in this catalog is Iceberg's. Its session catalog takes others too."""
    if catalog.class_name == _SESSION:
        return provider is None or provider.lower() == "iceberg"
    return catalog.class_name.startswith(_PACKAGE)
