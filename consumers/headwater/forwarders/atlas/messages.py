"""Messages of the topic that Atlas's hooks write to: its notifications in their envelope of version 1.0.0.

Nobody answers there, and nothing can be read before it is written. So what may only be written where it is absent
goes out as no more than a name and its place: that overwrites nothing.

Writes of bounded size: a table of two thousand columns in one transaction takes Atlas longer than anybody waits.
"""

from __future__ import annotations

import base64
import gzip
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from headwater.forwarders.atlas.entities import AtlasRef, Change, Put, References, Remove, WriteRule
from headwater.forwarders.atlas.types import COLUMN, COLUMN_LINEAGE, DATABASE, DATASET, MULTIPLE, REQUIRED

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
    return [_replace_guids(entity, assigned) for entity in entities] if assigned else list(entities)


def _replace_guids(value: Any, assigned: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            key: assigned.get(each, each) if key == "guid" else _replace_guids(each, assigned)
            for key, each in value.items()
            if key != "attributes"
        } | ({"attributes": value["attributes"]} if "attributes" in value else {})
    return [_replace_guids(each, assigned) for each in value] if isinstance(value, list) else value


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


KEY: Final = "headwater"
"""The key of all messages: they keep their order only in one partition."""
USER: Final = "headwater"
"""Whom Atlas names as the one who made a change."""
_VERSION: Final = {"version": "1.0.0", "versionParts": [1]}
_STUB_ATTRIBUTES: Final = {
    "hive_db": ("clusterName",),
    "hive_column": ("type",),
    "kafka_topic": ("topic", "uri"),
    "hdfs_path": ("path",),
    "rdbms_instance": ("rdbms_type",),
    DATABASE: ("catalog",),
    DATASET: ("catalog",),
}
"""What goes out of an entity that may only be written where it is absent: what Atlas demands of its own types, and what
is the same in all events."""
_SPACE: Final = uuid.UUID("6f0fd2a8-5a3a-5dc5-9d0c-3b1a3f4b8f0e")


def notifications(changes: Iterable[Change]) -> Iterator[dict[str, Any]]:
    """Yield the notifications of one event in their order: moves, then what is written, then deletions."""
    puts = {change.ref: change for change in changes if isinstance(change, Put)}
    for put in puts.values():
        if put.moved_from is not None:
            yield _move(put, put.moved_from)
    entities = _entities(puts)
    if entities:
        yield {
            "type": "ENTITY_FULL_UPDATE_V2",
            "user": USER,
            "entities": {"entities": entities, "referredEntities": {}},
        }
    for change in changes:
        if isinstance(change, Remove):
            yield {"type": "ENTITY_DELETE_V2", "user": USER, "entities": [_object_id(change.ref)]}


def envelopes(notification: Mapping[str, Any], at: int, most_bytes: int, *, compress: bool) -> list[bytes]:
    """Return the messages that a notification goes out as: one, unless it is larger than `most_bytes`.

    A larger one is compressed, and split if it still is too large. The parts have an id made from what is in them.
    """
    whole = _json(
        {
            "version": _VERSION,
            "msgCompressionKind": "NONE",
            "msgSplitIdx": 1,
            "msgSplitCount": 1,
            "msgSourceIP": "",
            "msgCreatedBy": USER,
            "msgCreationTime": at,
            "message": notification,
        }
    )
    if len(whole) <= most_bytes:
        return [whole]
    kind = "GZIP" if compress else "NONE"
    # Without a time in it, so that the same notification makes the same bytes again.
    body = base64.b64encode(gzip.compress(whole, mtime=0) if compress else whole).decode("ascii")
    identity = str(uuid.uuid5(_SPACE, body))
    room = most_bytes - len(_part(identity, kind, 999_999, 999_999, ""))
    pieces = [body[first : first + room] for first in range(0, len(body), room)]
    if len(pieces) == 1:
        return [_part(identity, kind, 1, 1, body)]
    return [_part(identity, kind, number, len(pieces), piece) for number, piece in enumerate(pieces)]


def _part(identity: str, kind: str, number: int, count: int, text: str) -> bytes:
    return _json(
        {
            "version": _VERSION,
            "msgId": identity,
            "msgCompressionKind": kind,
            "msgSplitIdx": number,
            "msgSplitCount": count,
            "message": text,
        }
    )


def _move(put: Put, before: AtlasRef) -> dict[str, Any]:
    entity = {"typeName": put.ref.type_name, "attributes": {"qualifiedName": put.ref.qualified_name, "name": put.name}}
    return {
        "type": "ENTITY_PARTIAL_UPDATE_V2",
        "user": USER,
        "entityId": _object_id(before),
        "entity": {"entity": entity, "referredEntities": {}},
    }


def _entities(puts: Mapping[AtlasRef, Put]) -> list[dict[str, Any]]:
    """Return the entities of one notification. They may refer to each other only: what isn't there fails it all."""
    written = {ref: put for ref, put in puts.items() if put.rule is not WriteRule.FILL}
    while True:
        complete = {ref: put for ref, put in written.items() if _has_what_it_needs(put, written)}
        if len(complete) == len(written):
            break
        written = complete
    guids = {ref: str(-number) for number, ref in enumerate(written, 1)}
    return [_entity(put, guids) for put in written.values()]


def _has_what_it_needs(put: Put, written: Mapping[AtlasRef, Put]) -> bool:
    needed = (put.references[name] for name in REQUIRED.get(put.ref.type_name, ()) if name in put.references)
    return all(any(ref in written for ref in _refs(value)) for value in needed)


def _entity(put: Put, guids: Mapping[AtlasRef, str]) -> dict[str, Any]:
    attributes = dict(put.attributes)
    if put.rule is WriteRule.ABSENT:
        attributes = {name: attributes[name] for name in _STUB_ATTRIBUTES.get(put.ref.type_name, ())}
    entity: dict[str, Any] = {
        "typeName": put.ref.type_name,
        "guid": guids[put.ref],
        "attributes": {"qualifiedName": put.ref.qualified_name, "name": put.name, **attributes},
    }
    references = {name: _reference(name, value, guids) for name, value in put.references.items()}
    known = {name: value for name, value in references.items() if value}
    if known:
        entity["relationshipAttributes"] = known
    return entity


def _reference(name: str, value: References, guids: Mapping[AtlasRef, str]) -> Any:
    found = [{"typeName": ref.type_name, "guid": guids[ref]} for ref in _refs(value) if ref in guids]
    if name in MULTIPLE:
        return found
    return found[0] if found else None


def _refs(value: References) -> tuple[AtlasRef, ...]:
    return (value,) if isinstance(value, AtlasRef) else value


def _object_id(ref: AtlasRef) -> dict[str, Any]:
    return {"typeName": ref.type_name, "uniqueAttributes": {"qualifiedName": ref.qualified_name}}


def _json(told: Mapping[str, Any]) -> bytes:
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
