"""From changes to requests: what is written depends on what Atlas has. Pure functions, without I/O and clock.

A request names entities by GUID. Those that Atlas has keep theirs; a new one has a negative number, by which the others
of the same request refer to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from headwater.forwarders.atlas.entities import EVENT_TIME, AtlasRef, Change, Put, References, Remove, WriteRule
from headwater.forwarders.atlas.types import COLUMN, DATASET, MULTIPLE, REQUIRED


class Related(NamedTuple):
    """Where a reference of an entity leads to."""

    type_name: str
    guid: str
    name: str


@dataclass(frozen=True)
class FoundEntity:
    """An entity that Atlas has."""

    ref: AtlasRef
    guid: str
    attributes: Mapping[str, Any]
    relations: Mapping[str, tuple[Related, ...]] = field(default_factory=dict)

    def is_newer_than(self, at: int) -> bool:
        time = self.attributes.get(EVENT_TIME)
        return isinstance(time, int) and time > at


class AtlasPlan:
    """The writes for one or more events whose changes don't concern each other."""

    def __init__(self) -> None:
        self.entities: list[dict[str, Any]] = []
        self.deletions: list[str] = []
        """By GUID."""
        self._touched: set[AtlasRef] = set()
        self._numbers = 0

    def concerns(self, changes: Iterable[Change]) -> bool:
        """Whether one of these changes has to do with what is written: then they have to be looked at afterwards."""
        return any(ref in self._touched for change in changes for ref in change.mentioned)

    def add(self, changes: Iterable[Change], found: Mapping[AtlasRef, FoundEntity]) -> None:
        """Plan the writes of one event. `found` has what Atlas has of all that they mention."""
        event = _EventPlan(changes, found, self._numbers)
        self.entities += event.entities()
        self.deletions += event.deletions()
        self._touched |= event.touched
        self._numbers = event.numbers

    @property
    def is_empty(self) -> bool:
        return not self.entities and not self.deletions


class _EventPlan:
    def __init__(self, changes: Iterable[Change], found: Mapping[AtlasRef, FoundEntity], numbers: int) -> None:
        self._found: Final = found
        self._puts: dict[AtlasRef, Put] = {}
        self._removals: list[Remove] = []
        self._movers: dict[AtlasRef, FoundEntity] = {}
        self._left_behind: list[FoundEntity] = []
        self._guids: dict[AtlasRef, str] = {ref: each.guid for ref, each in found.items()}
        self.touched: set[AtlasRef] = set()
        self.numbers = numbers
        for change in changes:
            if isinstance(change, Remove):
                self._removals.append(change)
            else:
                self._puts[change.ref] = change
        for put in self._puts.values():
            self._look_for_mover(put)
        self._writes: Final = [put for put in self._puts.values() if self._is_written(put)]
        for put in self._writes:
            self._number(put)

    def entities(self) -> list[dict[str, Any]]:
        """Return what to write. What lacks a reference that it needs is left out, and so is what needs that."""
        writes = list(self._writes)
        while True:
            complete = [put for put in writes if self._has_what_it_needs(put)]
            if len(complete) == len(writes):
                break
            left = {put.ref for put in complete}
            for put in writes:
                if put.ref not in left and put.ref not in self._found:
                    self._guids.pop(put.ref, None)
            writes = complete
        self.touched |= {put.ref for put in writes} | {put.moved_from for put in writes if put.moved_from is not None}
        return [entity for put in writes for entity in (self._entity(put), *self._moved_columns(put))]

    def deletions(self) -> list[str]:
        guids = [each.guid for each in self._left_behind]
        self.touched |= {each.ref for each in self._left_behind}
        for removal in self._removals:
            found = self._found.get(removal.ref)
            if found is not None and not found.is_newer_than(removal.at):
                guids.append(found.guid)
                self.touched.add(removal.ref)
        return guids

    def _look_for_mover(self, put: Put) -> None:
        """Find what is there under the old name. It moves, unless the new name is taken, or it is another by now."""
        old = None if put.moved_from is None else self._found.get(put.moved_from)
        if old is None or old.is_newer_than(put.at):
            return
        guard = None if put.guard is None else self._puts.get(put.guard)
        if guard is not None and guard is not put and guard.moved_from is not None and guard.ref not in self._movers:
            return  # a column stays with its table
        if put.ref not in self._found:
            self._movers[put.ref] = old
            self._guids[put.ref] = old.guid
        elif put.ref.type_name != COLUMN:  # a column goes with its table, or when it is no longer among its columns
            self._left_behind.append(old)

    def _is_written(self, put: Put) -> bool:
        if put.rule is WriteRule.ABSENT:
            return put.ref not in self._found and not self._is_older(put)
        return put.rule in {WriteRule.ADD, WriteRule.FILL} or not self._is_older(put)

    def _is_older(self, put: Put) -> bool:
        guard = None if put.guard is None else self._found.get(put.guard)
        return guard is not None and guard.is_newer_than(put.at)

    def _number(self, put: Put) -> None:
        if put.ref not in self._guids:
            self.numbers += 1
            self._guids[put.ref] = str(-self.numbers)

    def _has_what_it_needs(self, put: Put) -> bool:
        needed = REQUIRED.get(put.ref.type_name, ())
        return all(self._resolved(put.references[name]) for name in needed if name in put.references)

    def _entity(self, put: Put) -> dict[str, Any]:
        found = self._movers.get(put.ref) or self._found.get(put.ref)
        entity: dict[str, Any] = {
            "typeName": put.ref.type_name,
            "guid": self._guids[put.ref],
            "attributes": {
                "qualifiedName": put.ref.qualified_name,
                "name": put.name,
                **self._attributes(put, found),
            },
        }
        references = {name: self._reference(name, put, found) for name in put.references}
        known = {name: value for name, value in references.items() if value is not None}
        if known:
            entity["relationshipAttributes"] = known
        return entity

    def _attributes(self, put: Put, found: FoundEntity | None) -> dict[str, Any]:
        fills_only = put.rule is WriteRule.FILL or self._is_older(put)
        if found is None or not fills_only:
            return dict(put.attributes)
        return {name: value for name, value in put.attributes.items() if found.attributes.get(name) is None}

    def _reference(self, name: str, put: Put, found: FoundEntity | None) -> Any:
        leads_to = self._resolved(put.references[name])
        if name not in MULTIPLE:
            return leads_to[0] if leads_to else None
        if put.rule is WriteRule.ADD and found is not None:
            before = [{"typeName": each.type_name, "guid": each.guid} for each in found.relations.get(name, ())]
            leads_to = [*before, *(each for each in leads_to if each not in before)]
        return leads_to

    def _resolved(self, value: References) -> list[dict[str, str]]:
        """Return where a reference leads to, without what neither is there nor is written."""
        refs = (value,) if isinstance(value, AtlasRef) else value
        return [{"typeName": ref.type_name, "guid": self._guids[ref]} for ref in refs if ref in self._guids]

    def _moved_columns(self, put: Put) -> list[dict[str, Any]]:
        """Return the columns of a table that was renamed by an event that doesn't tell its columns."""
        old = self._movers.get(put.ref)
        if old is None or put.ref.type_name != DATASET or "columns" in put.references:
            return []
        base, _, namespace = put.ref.qualified_name.rpartition("@")
        table = {"typeName": DATASET, "guid": old.guid}
        return [
            {
                "typeName": each.type_name,
                "guid": each.guid,
                "attributes": {"qualifiedName": f"{base}.{each.name}@{namespace}", "name": each.name},
                "relationshipAttributes": {"dataset": table},
            }
            for each in old.relations.get("columns", ())
        ]


def needs_relations(change: Change) -> Iterable[AtlasRef]:
    """Yield the entities of which also the references have to be read."""
    if isinstance(change, Put):
        if change.rule is WriteRule.ADD:
            yield change.ref
        if change.moved_from is not None and change.ref.type_name == DATASET:
            yield change.moved_from
