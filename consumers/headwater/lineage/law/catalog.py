"""What changes of catalogs tell: datasets, lives, names, tags and branches come and go, and a history of all of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headwater.events.catalog import (
    AlterTable,
    AlterView,
    CatalogModification,
    CreateBranch,
    CreateTable,
    CreateTag,
    CreateView,
    DatabaseModification,
    DropBranch,
    DropTable,
    DropTag,
    DropView,
    Effect,
    MainReplaced,
    TableModification,
)
from headwater.events.changes import RenameTable
from headwater.events.envelope import Event
from headwater.events.names import DatasetId
from headwater.lineage.law.telling import (
    NO_NAME,
    Telling,
    catalog_hash,
    clean,
    dataset_hash,
    json_of,
    life_of,
    name_of,
)
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.kinds import Row
from headwater.lineage.rows.values import Value

RENAMED: Final = "RENAMED"
_BESIDE: Final = {
    *Event.model_fields,
    *("context", "identifier", "dataset", "life", "effect", "cause", "schema_id", "produced", "parent"),
}
"""What isn't in `detail`, because it has columns."""


def of_catalog(event: CatalogModification, tell: Telling) -> Iterator[Row]:
    yield from tell.catalog(event.context.name, event.context.id)
    yield _history(event, tell)
    if isinstance(event, TableModification) and event.dataset is not None:
        yield from tell.dataset(event.dataset)
        if event.effect is Effect.APPLIED:
            yield from _applied(event, event.dataset, tell)


def _applied(event: TableModification, dataset: DatasetId, tell: Telling) -> Iterator[Row]:
    if isinstance(event, (DropTable, DropView)):
        yield from _dropped(event, dataset, tell)
        return
    yield from tell.life(dataset, event.life, event.format.value)
    yield from _named(event, dataset, tell)
    if isinstance(event, CreateTable) and event.replaced_life is not None and event.replaced_life != event.life:
        yield tell.gone(t.LIFE, dataset_hash(dataset), life_of(event.replaced_life))
    yield from _lines(event, dataset, tell)
    yield from _seen_through(event, dataset, tell)


def _seen_through(event: TableModification, dataset: DatasetId, tell: Telling) -> Iterator[Row]:
    """What a view is defined on."""
    view = event.view if isinstance(event, CreateView) else event.new_view if isinstance(event, AlterView) else None
    for source in view.sources if view else ():
        if source.dataset is not None:
            yield from tell.dataset(source.dataset)
            yield from tell.alias(source.dataset, source.table)
        name = clean(str(source.table)) if source.dataset is None else None
        yield tell.fixed(t.VIEW_EDGE, (dataset_hash(dataset), dataset_hash(source.dataset), name))


def _dropped(event: TableModification, dataset: DatasetId, tell: Telling) -> Iterator[Row]:
    yield tell.gone(t.ALIAS, dataset_hash(dataset), *name_of(event.identifier))
    if event.life is not None:
        yield tell.gone(t.LIFE, dataset_hash(dataset), life_of(event.life))


def _named(event: TableModification, dataset: DatasetId, tell: Telling) -> Iterator[Row]:
    """A rename ends a name and begins another, and where it moves the data, another identity too."""
    if isinstance(event, AlterView) and event.renamed_to is not None:
        yield tell.gone(t.ALIAS, dataset_hash(dataset), *name_of(event.identifier))
        yield from tell.alias(dataset, event.renamed_to)
        return
    renames = [each for each in event.changes if isinstance(each, RenameTable)] if isinstance(event, AlterTable) else []
    if not renames:
        yield from tell.alias(dataset, event.identifier)
        return
    yield tell.gone(t.ALIAS, dataset_hash(dataset), *name_of(event.identifier))
    new = renames[-1].dataset or dataset
    if new != dataset:
        yield from tell.dataset(new)
        yield from tell.life(new, event.life, event.format.value)
        yield tell.seen(t.LINK, dataset_hash(dataset), dataset_hash(new), RENAMED)
    yield from tell.alias(new, renames[-1].table)


def _lines(event: TableModification, dataset: DatasetId, tell: Telling) -> Iterator[Row]:
    key = (dataset_hash(dataset), life_of(event.life))
    if isinstance(event, CreateTag):
        yield tell.seen(t.TAG, *key, clean(event.tag), place=(event.snapshot,))
    elif isinstance(event, DropTag):
        yield tell.gone(t.TAG, *key, clean(event.tag))
    elif isinstance(event, CreateBranch):
        origin = (clean(event.tag), clean(event.from_branch), event.snapshot)
        yield tell.seen(t.BRANCH, *key, clean(event.branch), origin=origin)
    elif isinstance(event, DropBranch):
        yield tell.gone(t.BRANCH, *key, clean(event.branch))
    elif isinstance(event, MainReplaced) and event.previous is not None:
        yield tell.gone(t.BRANCH, *key, clean(event.previous))


def _history(event: CatalogModification, tell: Telling) -> Row:
    """The whole event, as far as it isn't in columns."""
    detail = event.model_dump(mode="json", exclude=_BESIDE, exclude_none=True, exclude_defaults=True)
    if isinstance(event, AlterTable) and event.changes:  # each has its own name as the default of a field
        pairs = zip(event.changes, detail["changes"], strict=True)
        detail["changes"] = [{"change": change.change, **told} for change, told in pairs]
    context = (tell.time, *_subject(event))
    fixed = (event.kind, event.effect.value, event.cause.value, *context, json_of(detail))
    return tell.fixed(t.MODIFICATION, (tell.producer, tell.sequence), fixed)


def _subject(event: CatalogModification) -> tuple[Value, ...]:
    """Dataset, catalog, life, name, branch, schema id, snapshot made, its parent."""
    catalog = catalog_hash(event.context.id)
    if isinstance(event, TableModification):
        numbers = (event.schema_id, event.produced, event.parent)
        place = (dataset_hash(event.dataset), catalog, life_of(event.life), *name_of(event.identifier))
        return (*place, clean(event.on_branch), *numbers)
    nothing: tuple[Value, ...] = (None, None, None, None)
    if isinstance(event, DatabaseModification):
        name = (clean(event.identifier.catalog), clean(event.identifier.database), None)
        return (None, catalog, None, *name, *nothing)
    return (None, catalog, None, *NO_NAME, *nothing)
