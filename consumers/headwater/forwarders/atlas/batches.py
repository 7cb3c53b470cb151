"""Writes of bounded size: a table of two thousand columns in one transaction takes Atlas longer than anybody waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from headwater.forwarders.atlas.types import COLUMN, COLUMN_LINEAGE

MOST: Final = 200
"""So many entities are in one request at most."""
_PARTS: Final = frozenset({COLUMN, COLUMN_LINEAGE, "hive_column", "rdbms_column"})
"""Types of which one event can have many."""
_LISTS: Final = ("columns", "columnLineages")
"""References from a whole to its parts."""

Entity = dict[str, Any]


def small_requests(entities: Sequence[Entity], most: int = MOST) -> Iterator[list[Entity]]:
    """Yield the entities in requests of at most so many, in an order in which each finds what it refers to.

    If they are too many for one, wholes go first, without their parts, then the parts, then the list of parts of each
    whole: a part that isn't in it is one that Atlas has to delete.
    """
    if len(entities) <= most:
        if entities:
            yield list(entities)
        return
    wholes = [entity for entity in entities if entity["typeName"] not in _PARTS]
    # A column's process refers to columns.
    parts = sorted((entity for entity in entities if entity["typeName"] in _PARTS), key=_is_process)
    yield from _pieces([_without_lists(entity) for entity in wholes], most)
    yield from _pieces(parts, most)
    yield from _pieces([_lists_of(entity) for entity in wholes if _has_lists(entity)], most)


def with_guids(entities: Sequence[Entity], assigned: Mapping[str, str]) -> list[Entity]:
    """Return the entities with the GUIDs that Atlas gave to new ones of earlier requests."""
    return [_replaced(entity, assigned) for entity in entities] if assigned else list(entities)


def _replaced(value: Any, assigned: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            key: assigned.get(each, each) if key == "guid" else _replaced(each, assigned)
            for key, each in value.items()
            if key != "attributes"
        } | ({"attributes": value["attributes"]} if "attributes" in value else {})
    return [_replaced(each, assigned) for each in value] if isinstance(value, list) else value


def _pieces(entities: Sequence[Entity], most: int) -> Iterator[list[Entity]]:
    for first in range(0, len(entities), most):
        yield list(entities[first : first + most])


def _is_process(entity: Entity) -> bool:
    return bool(entity["typeName"] == COLUMN_LINEAGE)


def _has_lists(entity: Entity) -> bool:
    return any(name in entity.get("relationshipAttributes", {}) for name in _LISTS)


def _without_lists(entity: Entity) -> Entity:
    references = {name: value for name, value in entity.get("relationshipAttributes", {}).items() if name not in _LISTS}
    return {**entity, "relationshipAttributes": references}


def _lists_of(entity: Entity) -> Entity:
    references = entity["relationshipAttributes"]
    named = {name: entity["attributes"][name] for name in ("qualifiedName", "name")}
    lists = {name: references[name] for name in _LISTS if name in references}
    return {**entity, "attributes": named, "relationshipAttributes": lists}
