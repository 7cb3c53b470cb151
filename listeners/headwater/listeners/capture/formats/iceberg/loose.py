"""Snapshots that no plan tells of: made by calling Iceberg's library, on a table that one of Spark's catalogs has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import CommitKind, Extent, Format, ShapedSink, TableName
from headwater.events.identity.text import joined
from headwater.listeners.capture.formats.iceberg.modified import FORMAT
from headwater.listeners.capture.formats.iceberg.places import dataset_at, life_of
from headwater.listeners.capture.formats.iceberg.written import KINDS, branch_of, output_of, place
from headwater.listeners.capture.formats.protocol import Loose
from headwater.listeners.capture.scene import NamedCatalog, Scene

_EXTENTS: Final[Mapping[str, Extent]] = {"append": Extent.NOTHING, "replace": Extent.NOTHING, "delete": Extent.PART}


def loose_commit(fact: Mapping[str, Any], scene: Scene) -> Loose | None:
    """The table is told where the snapshot was found in it: a name alone may be another catalog's."""
    if fact.get("hook") != FORMAT or fact.get("did") != "committed":
        return None
    found = fact.get("found")
    if found is None:
        return Loose(whole=False)
    catalog = _catalog(found.get("catalog"), scene)
    spaces = found.get("namespace")
    table = None
    if catalog is not None and spaces is not None:
        table = TableName(catalog=catalog.name, database=joined(spaces) if spaces else "", table=found["name"])
    sink = ShapedSink(
        dataset=dataset_at(found["location"], catalog, table, scene),
        table=table,
        life=life_of(found),
        format=Format.ICEBERG,
    )
    told = {**place(sink), **branch_of(found, None, {})}
    operation = found["operation"]
    output = output_of(found, told, KINDS.get(operation, CommitKind.OTHER), _EXTENTS.get(operation, Extent.UNKNOWN))
    return Loose((output,))


def _catalog(name: str | None, scene: Scene) -> NamedCatalog | None:
    if name is None:
        return None
    known = scene.catalog_called(name)
    return known or next((each for each in scene.catalogs(FORMAT) if each.name == name), None)
