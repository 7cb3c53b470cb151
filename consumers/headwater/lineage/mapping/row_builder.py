"""Builds the rows of events: times, stamps, and rows that many kinds of events share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from struct import Struct
from typing import Any, Final, TypeAlias

from headwater.events.clock import micros_of
from headwater.events.envelope import Event
from headwater.events.jobs import CommitEvidence, Committed, DatasetRef
from headwater.events.names import CatalogId, DatasetId, Generation, TableName
from headwater.lineage.mapping.keys import (
    catalog_hash,
    catalog_key,
    clean_text,
    dataset_hash,
    dataset_key,
    generation_text,
    row_id,
    table_name_key,
)
from headwater.lineage.mapping.places import UNKNOWN_FORMAT, Place, place_of
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.model import NEVER, NOT_YET, RowKind, RowTuple, merge_values
from headwater.lineage.rows.values import Value

MAX_CLOCK_AHEAD: Final = 5 * 60 * 1_000_000
"""How far a producer's clock may be ahead of the bus, in microseconds. Later times are cut to this."""
_OFFSET: Final = 2**63
_pack_stamp: Final = Struct(">xQ16sQ").pack
_Tables: TypeAlias = "dict[str, dict[Any, Any]]"
"""The values of rows by their kinds, and by their keys; those of immutable and of partitioned kinds by their ids."""
_NONE: Final[Mapping[str, Sequence[Value]]] = {}
RECONCILED_FAMILY: Final = "RECONCILED"
"""Of commits that were found in a table's log, in `arrivals`."""


def _new_tables() -> _Tables:
    return {kind.name: {} for kind in t.KINDS}


def arrival_family(event: Event) -> str:
    """Return the family under which an event's arrival is recorded.

    Commits that were found in a table's log have one of their own: no driver sent them, so they say nothing of how far
    what drivers send has come.
    """
    if isinstance(event, Committed) and event.evidence is CommitEvidence.RECONCILED:
        return RECONCILED_FAMILY
    return event.family.value


class _RepeatedRows:
    """Rows of several events, of which times and stamps differ."""

    __slots__ = ("add", "newest", "oldest")

    def __init__(self, add: Callable[[RowBuilder, Any], None], event: tuple[bytes, int]) -> None:
        self.add = add
        self.oldest = self.newest = event
        """Stamps and times of the oldest and the newest event."""


class RowBuilder:
    """Builds the rows of events, one of each key for all of them. `begin` says which event comes next."""

    def __init__(self) -> None:
        self._tables = _new_tables()
        self.time = 0
        self.producer = b""
        self.sequence = 0
        self.stamp = b""
        self._repeated: dict[Hashable, _RepeatedRows] = {}

    def begin(self, event: Event, append_time: int | None) -> None:
        self.time = cap_time(micros_of(event.time), append_time)
        self.producer = event.producer.bytes
        self.sequence = event.sequence
        self.stamp = make_stamp(self.time, self.producer, self.sequence)

    def repeat(self, add: Callable[[RowBuilder, Any], None], shared: Hashable) -> None:
        """Call `add` for rows that all events with the same `shared` have in common, but for their times and stamps: of
        several events the oldest and the newest say it all. It is called when rows are drained."""
        known, stamp = self._repeated.get(shared), self.stamp
        if known is None:
            self._repeated[shared] = _RepeatedRows(add, (stamp, self.time))
        elif stamp > known.newest[0]:
            known.newest = stamp, self.time
        elif stamp < known.oldest[0]:
            known.oldest = stamp, self.time

    def drain(self) -> dict[str, list[RowTuple]]:
        """Return the rows of all events since the last call, by their kinds."""
        repeated, self._repeated = self._repeated, {}
        for shared, each in repeated.items():
            for self.stamp, self.time in {each.oldest, each.newest}:
                each.add(self, shared)
        tables, self._tables = self._tables, _new_tables()
        for name, table in tables.items():
            kind = t.KIND_OF[name]
            if not kind.partition and not kind.is_immutable:
                for key, values in table.items():
                    values[0] = row_id(kind, key)
        return {name: list(map(tuple, table.values())) for name, table in tables.items() if table}

    def fact(self, kind: RowKind, key: tuple[Value, ...], values: RowTuple) -> bytes:
        """Add a row of a partitioned kind, of which nearly every one is new. `values` follow the key. Return its id."""
        number = kind.hash_key(*key)
        table = self._tables[kind.name]
        held = table.setdefault(number, row := (number, *key, *values))
        if held is not row and held != row:
            merged = list(held)
            merge_values(kind, merged, row)
            table[number] = tuple(merged)
        return number

    def observed(
        self, kind: RowKind, key: tuple[Value, ...], maxima: tuple[Value, ...] = (), **groups: Sequence[Value]
    ) -> list[Any]:
        """Add a row that existed at the time of the event, with the column groups that the event sets. Return its
        values so far."""
        time = self.time
        values: list[Any] = [None, *key, *maxima]
        if kind.has_times:
            values += (time, time, NEVER) if kind.has_deletions else (time, time)
        return self._add(kind, key, values, groups)

    def _add(
        self, kind: RowKind, key: tuple[Value, ...], values: list[Any], groups: Mapping[str, Sequence[Value]] = _NONE
    ) -> list[Any]:
        for group in kind.groups:
            of_group = groups.get(group.name)
            values += group.blank if of_group is None else (self.stamp, *of_group)
        if kind.has_bits:
            values.append(0)
        held: list[Any] = self._tables[kind.name].setdefault(key, values)
        if held is not values:
            merge_values(kind, held, values)
        return held

    def deleted(self, kind: RowKind, key: tuple[Value, ...], at: int | None = None) -> None:
        """Add a row that was deleted at the time of the event, or at `at` if that is earlier."""
        self._add(kind, key, [None, *key, NOT_YET, NEVER, self.time if at is None else min(at, self.time)])

    def constant(self, kind: RowKind, key: tuple[Value, ...], content: tuple[Value, ...] = ()) -> None:
        """Add a row that consists of its key and the content that belongs to it."""
        number = row_id(kind, key)
        self.constants(kind, {number: (number, *key, *content)})

    def constants(self, kind: RowKind, rows: Mapping[bytes, RowTuple]) -> None:
        """Add such rows by their ids."""
        self._tables[kind.name].update(rows)

    def ranked(self, kind: RowKind, key: tuple[Value, ...], group: str, values: tuple[Value, ...], rank: int) -> None:
        """Add a row with one column group. Values of a higher rank beat those of a lower rank, whatever their times."""
        stamp, self.stamp = self.stamp, b"%c%b" % (rank, self.stamp[1:])
        self.observed(kind, key, **{group: values})
        self.stamp = stamp

    def numbered(self, kind: RowKind, key: tuple[Value, ...], bits: int) -> None:
        """Add a row with times and these bits, and nothing else."""
        time, held = self.time, self._tables[kind.name].get(key)
        if held is None:
            held = self.observed(kind, key)
        elif time > held[-2]:
            held[-2] = time
        elif time < held[-3]:
            held[-3] = time
        held[-1] |= bits

    # What many events build.

    def dataset(self, dataset: DatasetId) -> None:
        self.constant(t.DATASET, dataset_key(dataset))

    def generation(self, dataset: DatasetId, generation: Generation | None, table_format: str | None) -> None:
        if generation is not None:
            known = {} if table_format in {None, "UNKNOWN"} else {"stored": (table_format,)}
            self.observed(t.GENERATION, (dataset_hash(dataset), generation_text(generation)), **known)

    def alias(self, dataset: DatasetId, table: TableName | None) -> None:
        if table is not None:
            self.observed(t.ALIAS, (dataset_hash(dataset), *table_name_key(table)))

    def place(self, place: DatasetRef) -> Place:
        """Add the rows of a dataset that a job used: that it exists, in this generation, under this name."""
        found = place_of(place)
        self.used(found)
        return found

    def used(self, place: Place) -> None:
        if place.dataset is not None:
            self.constant(t.DATASET, place.dataset)
        if place.generation is not None:
            known = {} if place.format == UNKNOWN_FORMAT else {"stored": (place.format,)}
            self.observed(t.GENERATION, place.generation, **known)
        if place.alias is not None:
            self.observed(t.ALIAS, place.alias)

    def catalog(self, name: str, catalog: CatalogId | None) -> None:
        if catalog is not None:
            self.constant(t.CATALOG, catalog_key(catalog))
            self.observed(t.CATALOG_NAME, (clean_text(name), catalog_hash(catalog)))


def make_stamp(time: int, producer: bytes, sequence: int) -> bytes:
    """Return the stamp of a fact of rank 0. Stamps order facts by rank, then by time, producer and sequence number."""
    return _pack_stamp(time + _OFFSET, producer, sequence)


def cap_time(micros: int, append_time: int | None) -> int:
    """Limit a producer's time to the bus's time plus MAX_CLOCK_AHEAD."""
    return micros if append_time is None else min(micros, append_time + MAX_CLOCK_AHEAD)
