"""Datasets and databases in Atlas, from what happened to tables, views and databases.

Tables of Hive belong to Atlas's own hook in Hive's metastore, which tells all of this; headwater changes none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.events.catalog import (
    AlterDatabase,
    AlterTable,
    AlterView,
    CreateDatabase,
    CreateTable,
    CreateView,
    DropDatabase,
    DropTable,
    DropView,
    TableModification,
)
from headwater.events.changes import (
    RenameColumn,
    RenameTable,
    SetComment,
    SetLocation,
    TableChange,
)
from headwater.events.names import DatasetId, TableName
from headwater.events.tables import Column, Table, Transform, View
from headwater.forwarders.atlas.changes import EventChanges, column_text, place_attributes
from headwater.forwarders.atlas.edges import put_column_lineage
from headwater.forwarders.atlas.entities import AtlasRef
from headwater.forwarders.atlas.names import AtlasDataset


def change_created_table(event: CreateTable, changes: EventChanges) -> None:
    """A table that is made again under its name has nothing of what the old one had."""
    dataset = _own(event, changes)
    if dataset is not None and event.on_branch is None:
        _put_table(dataset, event, event.table, changes)


def change_altered_table(event: AlterTable, changes: EventChanges) -> None:
    old = _own(event, changes)
    new = _own(event, changes, _name_after(event), _place_after(event))
    if old is None or new is None or event.on_branch is not None:
        return
    renamed = _renamed_columns(event.changes)
    if event.new_table is not None and event.new_table.columns:
        before = {
            column.name: old.column((renamed.get(column.name, column.name),)) for column in event.new_table.columns
        }
        known = {name: ref for name, ref in before.items() if ref is not None}
        _put_table(new, event, event.new_table, changes, moved_from=old.ref, previous=known)
        return
    attributes = {"catalog": new.table.catalog if new.table else None, **_altered_attributes(event.changes)}
    database = changes.put_database_of(new)
    changes.put(new.ref, new.name, attributes, {"database": database}, moved_from=_if_other(old.ref, new.ref))


def change_dropped_table(event: DropTable | DropView, changes: EventChanges) -> None:
    dataset = _own(event, changes)
    if dataset is None:
        return
    if isinstance(event, DropView):
        changes.remove(changes.namer.view_query(dataset))
    changes.remove(dataset.ref)


def change_created_view(event: CreateView, changes: EventChanges) -> None:
    dataset = _own(event, changes)
    if dataset is not None:
        _put_view(dataset, event, event.view, changes)


def change_altered_view(event: AlterView, changes: EventChanges) -> None:
    old = _own(event, changes)
    new = _own(event, changes, event.renamed_to) if event.renamed_to else old
    view = event.new_view or event.view
    if old is None or new is None:
        return
    if view is not None:
        _put_view(new, event, view, changes, moved_from=old)
    elif new.ref != old.ref:
        attributes = {**place_attributes(new), "kind": "VIEW"}
        changes.put(new.ref, new.name, attributes, {"database": changes.put_database_of(new)}, moved_from=old.ref)


def change_database(event: CreateDatabase | AlterDatabase, changes: EventChanges) -> None:
    database = event.database if isinstance(event, CreateDatabase) else event.new_database
    attributes = {
        "catalog": event.identifier.catalog,
        "description": database.comment,
        "owner": database.owner,
        "location": database.location,
        "parameters": dict(database.properties),
    }
    changes.put(changes.namer.database(event.identifier), event.identifier.database, attributes)


def change_dropped_database(event: DropDatabase, changes: EventChanges) -> None:
    changes.remove(changes.namer.database(event.identifier))


def _own(
    event: TableModification, changes: EventChanges, table: TableName | None = None, place: DatasetId | None = None
) -> AtlasDataset | None:
    """Return the table that is modified, if headwater is who tells Atlas of it."""
    dataset = changes.namer.of_modification(event, table, place)
    return dataset if dataset is not None and dataset.is_own else None


def _put_table(
    dataset: AtlasDataset,
    event: CreateTable | AlterTable,
    table: Table,
    changes: EventChanges,
    *,
    moved_from: AtlasRef | None = None,
    previous: dict[str, AtlasRef] | None = None,
) -> None:
    attributes = {
        **place_attributes(dataset),
        "location": table.location or (None if dataset.dataset is None else str(dataset.dataset)),
        "description": table.comment,
        "owner": table.owner,
        "generation": None if event.generation is None else str(event.generation),
        "partitioning": [transform_text(each) for each in table.partitioning],
        "primaryKey": [column_text(each) for each in table.primary_key],
        "parameters": dict(table.properties),
        "query": None,
    }
    database = changes.put_database_of(dataset)
    columns = tuple(_refs_of(dataset, table.columns))
    moved = None if moved_from is None else _if_other(moved_from, dataset.ref)
    changes.put(
        dataset.ref, dataset.name, attributes, {"database": database, "columns": columns or None}, moved_from=moved
    )
    changes.put_columns(dataset, table.columns, previous)


def _put_view(
    dataset: AtlasDataset,
    event: CreateView | AlterView,
    view: View,
    changes: EventChanges,
    *,
    moved_from: AtlasDataset | None = None,
) -> None:
    attributes = {
        **place_attributes(dataset),
        "kind": "VIEW",
        "description": view.comment,
        "owner": view.owner,
        "query": view.sql,
        "parameters": dict(view.properties),
    }
    columns = tuple(_refs_of(dataset, view.columns))
    before = {} if moved_from is None else {column.name: moved_from.column((column.name,)) for column in view.columns}
    previous = {name: ref for name, ref in before.items() if ref is not None}
    references = {"database": changes.put_database_of(dataset), "columns": columns or None}
    moved = None if moved_from is None else _if_other(moved_from.ref, dataset.ref)
    changes.put(dataset.ref, dataset.name, attributes, references, moved_from=moved)
    changes.put_columns(dataset, view.columns, previous)
    _put_view_query(dataset, event, view, changes, moved_from)


def _put_view_query(
    dataset: AtlasDataset,
    event: CreateView | AlterView,
    view: View,
    changes: EventChanges,
    moved_from: AtlasDataset | None,
) -> None:
    """A view has no job: what makes it from its sources is its query. A new definition takes the place of the old."""
    sources = [changes.namer.of_source(source, event.context) for source in view.sources]
    for source in sources:
        if source is not None:
            changes.mention(source)
    query = changes.namer.view_query(dataset)
    inputs = tuple(dict.fromkeys(source.ref for source in sources if source is not None))
    moved = None if moved_from is None else _if_other(changes.namer.view_query(moved_from), query)
    attributes = {"jobType": "VIEW", "query": view.sql}
    edges = put_column_lineage(changes, query, sources, [dataset], view.lineage, is_whole=True)
    references = {"inputs": inputs, "outputs": (dataset.ref,), "columnLineages": edges}
    changes.put(query, f"{dataset.name} query", attributes, references, moved_from=moved)


def _altered_attributes(changes: Sequence[TableChange]) -> dict[str, Any]:
    """Return what changes say of a table that isn't known in full."""
    told: dict[str, Any] = {}
    for change in changes:
        if isinstance(change, SetComment):
            told["description"] = change.comment
        elif isinstance(change, SetLocation):
            told["location"] = change.location
    return told


def _renamed_columns(changes: Sequence[TableChange]) -> dict[str, str]:
    """Return what columns were called before, by what they are called now."""
    renamed: dict[str, str] = {}
    for change in changes:
        if isinstance(change, RenameColumn) and len(change.path) == 1:
            renamed[change.new_name] = renamed.pop(change.path[0], change.path[0])
    return renamed


def _name_after(event: AlterTable) -> TableName:
    """Return the name of a table when the event is over."""
    return next(
        (change.table for change in reversed(event.changes) if isinstance(change, RenameTable)), event.identifier
    )


def _place_after(event: AlterTable) -> DatasetId | None:
    """Return where the table is when the event is over, if that is another place."""
    moves = [change.dataset for change in event.changes if isinstance(change, (RenameTable, SetLocation))]
    return next((move for move in reversed(moves) if move is not None), None)


def _refs_of(dataset: AtlasDataset, columns: Sequence[Column]) -> list[AtlasRef]:
    found = (dataset.column((column.name,)) for column in columns)
    return list(dict.fromkeys(ref for ref in found if ref is not None))


def _if_other(before: AtlasRef, now: AtlasRef) -> AtlasRef | None:
    return before if before != now else None


def transform_text(transform: Transform) -> str:
    """Return a partition's transform as Spark's SQL writes it.

    >>> transform_text(Transform(name="bucket", columns=(("id",),), arguments=("16",)))
    'bucket(16, id)'
    """
    columns = [column_text(column) for column in transform.columns]
    if transform.is_identity and len(columns) == 1:
        return columns[0]
    return f"{transform.name}({', '.join([*transform.arguments, *columns])})"
