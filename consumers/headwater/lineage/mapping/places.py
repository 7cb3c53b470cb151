"""What rows say of the datasets that jobs use. Jobs use the same ones again and again, so it is remembered."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from operator import itemgetter
from typing import Any, Final

from headwater.events.jobs import DatasetRef, Input, Output
from headwater.lineage.mapping.keys import (
    NO_NAME,
    clean_text,
    dataset_hash,
    dataset_key,
    generation_text,
    row_id,
    table_name_key,
)
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.values import Value

UNKNOWN_FORMAT: Final = "UNKNOWN"
_NO_USE: Final = (None,) * 6
_MOST_NAMES: Final = 1 << 13
_MOST_USES: Final = 8
"""How many places of one name are remembered: a table is read and written in few ways."""
_LONGEST_PLACE: Final = 1_000
"""Characters of the longest place that is remembered: memory for all of them is bounded."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """What rows say of a dataset that a job used, and how. It is compared by identity, which is quick."""

    id: bytes
    """The id of its row in `places`."""
    key: tuple[Value, ...]
    hash: bytes | None
    name: tuple[Value, ...]
    format: str
    branch: Value
    opaque: Value
    name_alone: Value
    """The table's name, if its dataset is unknown."""
    dataset: tuple[Value, ...] | None
    """The keys of other rows, as far as it has them."""
    generation: tuple[Value, ...] | None
    alias: tuple[Value, ...] | None

    @property
    def is_table(self) -> bool:
        return self.hash is not None or self.name != NO_NAME


_PLACES: Final[dict[str | None, list[tuple[tuple[Any, ...], Place]]]] = {}
"""Places with the fields that they were made of, by the names of datasets. To compare these few is quicker than to hash
the fields."""
_PLACE: Final = ("dataset", "table", "generation", "format", "branch", "opaque", "main")
_place_fields: Final = itemgetter(*_PLACE)
_source_fields: Final = itemgetter(*_PLACE, "mode", "tag")
_sink_fields: Final = itemgetter(*_PLACE, "commit_kind", "replaced", "schema_id")


def place_of(place: DatasetRef) -> Place:
    """Return what rows say of a dataset."""
    of = _place_fields(place.__dict__)
    return _find_known(place, of) or _remember(place, of, ())


def source_place(source: Input) -> Place:
    """Return what rows say of a dataset, and of how it is read: mode and tag."""
    of = _source_fields(source.__dict__)
    return _find_known(source, of) or _remember(source, of, (source.mode, source.tag, None, None, None, None))


def sink_place(sink: Output, made_from: str) -> Place:
    """Return what rows say of a dataset, and of how it is written: commit kind, what was replaced, what it was made
    from, schema id."""
    of = (*_sink_fields(sink.__dict__), made_from)
    uses = (None, None, sink.commit_kind, sink.replaced, made_from, sink.schema_id)
    return _find_known(sink, of) or _remember(sink, of, uses)


def _find_known(place: DatasetRef, of: tuple[Any, ...]) -> Place | None:
    for fields, known in _PLACES.get(_name_of(place), ()):
        if fields == of:
            return known
    return None


def _name_of(place: DatasetRef) -> str | None:
    return place.opaque if place.dataset is None else place.dataset.name


def _remember(place: DatasetRef, of: tuple[Any, ...], how: tuple[Any, ...]) -> Place:
    found = _new_place(place, how or _NO_USE)
    if sum(len(each) for each in (*found.key, *(found.dataset or ())) if isinstance(each, str)) > _LONGEST_PLACE:
        return found
    if len(_PLACES) >= _MOST_NAMES:
        _PLACES.clear()
    uses = _PLACES.setdefault(_name_of(place), [])
    if len(uses) >= _MOST_USES:
        uses.clear()
    uses.append((of, found))
    return found


def _new_place(place: DatasetRef, how: tuple[Any, ...]) -> Place:
    dataset, name, generation = place.dataset, table_name_key(place.table), generation_text(place.generation)
    number, branch, opaque = dataset_hash(dataset), clean_text(place.branch), clean_text(place.opaque)
    form, is_known = place.format.value, dataset is not None
    uses = [_column_value(each) for each in how]
    key = (number, *name, generation, branch, opaque, form, int(place.main), *uses)
    return Place(
        id=row_id(t.PLACE, key),
        key=key,
        hash=number,
        name=name,
        format=form,
        branch=branch,
        opaque=opaque,
        name_alone=None if is_known or place.table is None else clean_text(str(place.table)),
        dataset=dataset_key(dataset) if dataset is not None else None,
        generation=(number, generation) if is_known and place.generation is not None else None,
        alias=(number, *name) if is_known and place.table is not None else None,
    )


def _column_value(value: Any) -> Value:
    if isinstance(value, Enum):
        return str(value.value)
    return clean_text(value) if isinstance(value, str) else value  # type: ignore[no-any-return]
