"""Rows of catalog changes: datasets, generations, names, tags and branches come and go, and `modifications` records it
all.
"""

from __future__ import annotations

from typing import Final

from headwater.events.catalog import (
    AlterTable,
    AlterView,
    CatalogModification,
    CorrectionSwitched,
    CreateBranch,
    CreateTable,
    CreateTag,
    CreateView,
    DatabaseModification,
    DropBranch,
    DropTable,
    DropTag,
    DropView,
    MainReplaced,
    ModificationEffect,
    TableModification,
)
from headwater.events.changes import RenameTable
from headwater.events.envelope import Event
from headwater.events.names import DatasetId, TableName
from headwater.lineage.mapping.keys import (
    NO_NAME,
    catalog_hash,
    clean_text,
    dataset_hash,
    generation_text,
    table_name_key,
    to_json_text,
)
from headwater.lineage.mapping.row_builder import RowBuilder
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.values import Value, hash_key

RENAMED: Final = "RENAMED"
_BESIDE: Final = {
    *Event.model_fields,
    *("context", "identifier", "dataset", "generation", "effect", "cause", "schema_id", "produced", "parent"),
}
"""Fields of the event that have columns of their own, so that `detail` leaves them out."""


def map_catalog_event(event: CatalogModification, build: RowBuilder) -> None:
    build.catalog(event.context.name, event.context.id)
    _history(event, build)
    if isinstance(event, TableModification) and event.dataset is not None:
        build.dataset(event.dataset)
        if event.effect is ModificationEffect.APPLIED:
            _add_applied(event, event.dataset, build)


def _add_applied(event: TableModification, dataset: DatasetId, build: RowBuilder) -> None:
    if isinstance(event, (DropTable, DropView)):
        _add_drop(event, dataset, build)
        return
    build.generation(dataset, event.generation, event.format.value)
    _name_rows(event, dataset, build)
    if (
        isinstance(event, CreateTable)
        and event.replaced_generation is not None
        and event.replaced_generation != event.generation
    ):
        build.deleted(t.GENERATION, (dataset_hash(dataset), generation_text(event.replaced_generation)))
    _lines(event, dataset, build)
    _seen_through(event, dataset, build)


def _seen_through(event: TableModification, dataset: DatasetId, build: RowBuilder) -> None:
    """Add the tables that a view is defined on."""
    view = event.view if isinstance(event, CreateView) else event.new_view if isinstance(event, AlterView) else None
    if isinstance(event, AlterView):
        dataset = event.renamed_dataset or dataset
    for source in view.sources if view else ():
        if source.dataset is not None:
            build.dataset(source.dataset)
            build.alias(source.dataset, source.table)
        name = clean_text(str(source.table)) if source.dataset is None else None
        build.constant(t.VIEW_EDGE, (dataset_hash(dataset), dataset_hash(source.dataset), name))


def _add_drop(event: TableModification, dataset: DatasetId, build: RowBuilder) -> None:
    build.deleted(t.ALIAS, (dataset_hash(dataset), *table_name_key(event.identifier)))
    if event.generation is not None:
        build.deleted(t.GENERATION, (dataset_hash(dataset), generation_text(event.generation)))


def _name_rows(event: TableModification, dataset: DatasetId, build: RowBuilder) -> None:
    """Add the dataset's name. A rename ends one name and starts another; if it moved the data, it starts a new
    identity too."""
    renamed = _new_name(event)
    if renamed is None:
        build.alias(dataset, event.identifier)
        return
    build.deleted(t.ALIAS, (dataset_hash(dataset), *table_name_key(event.identifier)))
    name, new = renamed[0], renamed[1] or dataset
    if new != dataset:
        build.dataset(new)
        build.generation(new, event.generation, event.format.value)
        build.observed(t.DATASET_LINK, (dataset_hash(dataset), dataset_hash(new), RENAMED))
    build.alias(new, name)


def _new_name(event: TableModification) -> tuple[TableName, DatasetId | None] | None:
    """Return what a table or view is called from now on, and what it is then, if it was renamed."""
    if isinstance(event, AlterView) and event.renamed_to is not None:
        return event.renamed_to, event.renamed_dataset
    renames = [each for each in event.changes if isinstance(each, RenameTable)] if isinstance(event, AlterTable) else []
    return (renames[-1].table, renames[-1].dataset) if renames else None


def _lines(event: TableModification, dataset: DatasetId, build: RowBuilder) -> None:
    key = (dataset_hash(dataset), generation_text(event.generation))
    if isinstance(event, CreateTag):
        build.observed(t.TAG, (*key, clean_text(event.tag)), place=(event.snapshot,))
    elif isinstance(event, DropTag):
        build.deleted(t.TAG, (*key, clean_text(event.tag)))
    elif isinstance(event, CreateBranch):
        origin = (clean_text(event.tag), clean_text(event.from_branch), event.snapshot)
        build.observed(t.BRANCH, (*key, clean_text(event.branch)), origin=origin)
    elif isinstance(event, DropBranch):
        build.deleted(t.BRANCH, (*key, clean_text(event.branch)))
    elif isinstance(event, MainReplaced) and event.previous is not None:
        build.deleted(t.BRANCH, (*key, clean_text(event.previous)))


def _history(event: CatalogModification, build: RowBuilder) -> None:
    """Add the row of `modifications`, with all details that have no column."""
    detail = event.model_dump(mode="json", exclude=_BESIDE, exclude_none=True, exclude_defaults=True)
    if isinstance(event, AlterTable) and event.changes:  # each has its own name as the default of a field
        pairs = zip(event.changes, detail["changes"], strict=True)
        detail["changes"] = [{"change": change.change, **fields} for change, fields in pairs]
    context = (build.time, *_subject(event))
    values = (event.kind, event.effect.value, event.cause.value, *context, to_json_text(detail))
    build.observed(t.MODIFICATION, _event_key(event, build), event=values)


def _event_key(event: CatalogModification, build: RowBuilder) -> tuple[Value, ...]:
    """Return the key of an event's row. A switch that was interrupted reports again, as another producer, what is one
    fact."""
    if isinstance(event, CorrectionSwitched):
        table = (dataset_hash(event.dataset), generation_text(event.generation), *table_name_key(event.identifier))
        return (hash_key(event.kind, (event.correction, *table)), 0)
    return (build.producer, build.sequence)


def _subject(event: CatalogModification) -> tuple[Value, ...]:
    """Dataset, catalog, generation, name, branch, schema id, snapshot made, its parent."""
    catalog = catalog_hash(event.context.id)
    if isinstance(event, TableModification):
        numbers = (event.schema_id, event.produced, event.parent)
        place = (
            dataset_hash(event.dataset),
            catalog,
            generation_text(event.generation),
            *table_name_key(event.identifier),
        )
        return (*place, clean_text(event.on_branch), *numbers)
    nothing: tuple[Value, ...] = (None, None, None, None)
    if isinstance(event, DatabaseModification):
        name = (clean_text(event.identifier.catalog), clean_text(event.identifier.database), None)
        return (None, catalog, None, *name, *nothing)
    return (None, catalog, None, *NO_NAME, *nothing)
