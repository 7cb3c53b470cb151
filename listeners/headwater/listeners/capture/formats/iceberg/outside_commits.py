"""Snapshots that no plan tells of: made by calling Iceberg's library, on a table that one of Spark's catalogs has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.events import Format, TableName
from headwater.events.commit_words import ICEBERG_KINDS
from headwater.events.identity.text import joined
from headwater.events.jobs import CommitKind, OverwriteScope, SinkSchema
from headwater.listeners.capture.context import CaptureContext, SessionNamedCatalog
from headwater.listeners.capture.formats.iceberg.table_changes import FORMAT
from headwater.listeners.capture.formats.iceberg.table_refs import dataset_at, generation_of
from headwater.listeners.capture.formats.iceberg.write_results import branch_of, output_of, picked_input
from headwater.listeners.capture.formats.protocol import OutsideCommit, ref_fields

_EXTENTS: Final[Mapping[str, OverwriteScope]] = {
    "append": OverwriteScope.NOTHING,
    "replace": OverwriteScope.NOTHING,
    "delete": OverwriteScope.PART,
}


def outside_commit(fact: Mapping[str, Any], context: CaptureContext) -> OutsideCommit | None:
    """The table is given where the snapshot was found in it: a name alone may be another catalog's."""
    if fact.get("hook") != FORMAT or fact.get("action") != "committed":
        return None
    found = fact.get("found")
    if found is None:
        return OutsideCommit(whole=False)
    catalog = _catalog(found.get("catalog"), context)
    spaces = found.get("namespace")
    table = None
    if catalog is not None and spaces is not None:
        table = TableName(catalog=catalog.name, database=joined(spaces), table=found["name"])
    sink = SinkSchema(
        dataset=dataset_at(found["location"], catalog, table, context),
        table=table,
        generation=generation_of(found),
        format=Format.ICEBERG,
    )
    fields = {**ref_fields(sink), **branch_of(found, None, {})}
    operation = found["operation"]
    extent = _EXTENTS.get(operation, OverwriteScope.UNKNOWN)
    picked = picked_input(found, sink) if "picked" in found else None
    if picked is not None:
        extent = OverwriteScope.PART if extent is OverwriteScope.UNKNOWN else extent
        return OutsideCommit((output_of(found, fields, CommitKind.CHERRY_PICK, extent),), (picked,))
    return OutsideCommit((output_of(found, fields, ICEBERG_KINDS.get(operation, CommitKind.OTHER), extent),))


def _catalog(name: str | None, context: CaptureContext) -> SessionNamedCatalog | None:
    if name is None:
        return None
    known = context.catalog_called(name)
    return known or next((catalog for catalog in context.catalogs(FORMAT) if catalog.name == name), None)
