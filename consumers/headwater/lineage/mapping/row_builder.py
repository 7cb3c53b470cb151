"""Builds the rows of events: times, stamps, keys, and rows that many kinds of events share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, TypeAlias
from uuid import UUID

from pydantic_core import to_json

from headwater.events.clock import micros_of
from headwater.events.envelope import Event
from headwater.events.jobs import CommitEvidence, Committed, DatasetRef
from headwater.events.names import DEFAULT_JOB_NAMESPACE, CatalogId, DatasetId, Generation, JobName, TableName
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.model import (
    NEVER,
    NOT_YET,
    GroupValues,
    Row,
    RowKind,
    RowTimes,
    combine_groups,
    combine_maxima,
)
from headwater.lineage.rows.values import Value, hash_key

MAX_CLOCK_AHEAD: Final = 5 * 60 * 1_000_000
"""How far a producer's clock may be ahead of the bus, in microseconds. Later times are cut to this."""
_OFFSET: Final = 2**63
NO_NAME: Final = (None, None, None)
KIND_OF: Final = {kind.name: kind for kind in t.KINDS}
UNKNOWN_FORMAT: Final = "UNKNOWN"
_NO_USE: Final = (None,) * 6
_MOST_PLACES: Final = 1 << 14
_LONGEST_PLACE: Final = 1_000
"""Characters of the longest place that is remembered: memory for all of them is bounded."""
Groups: TypeAlias = "tuple[GroupValues | None, ...]"
RECONCILED_FAMILY: Final = "RECONCILED"
"""Of commits that were found in a table's log, in `arrivals`."""


def arrival_family(event: Event) -> str:
    """Return the family under which an event's arrival is recorded.

    Commits that were found in a table's log have one of their own: no driver sent them, so they say nothing of how far
    what drivers send has come.
    """
    if isinstance(event, Committed) and event.evidence is CommitEvidence.RECONCILED:
        return RECONCILED_FAMILY
    return event.family.value


class _MergedRow:
    """What events say of one key, combined as `rows.model.combine_rows` combines rows."""

    __slots__ = ("bits", "deleted", "first", "groups", "last", "maxima")

    def __init__(self, first: int, last: int, maxima: tuple[Value, ...], groups: Groups) -> None:
        self.first, self.last, self.deleted = first, last, NEVER
        self.maxima, self.groups, self.bits = maxima, groups, 0

    def row(self, kind: RowKind, key: tuple[Value, ...]) -> Row:
        times = RowTimes(self.first, self.last, self.deleted)
        return Row(kind, row_id(kind, key), key, self.maxima, times, self.groups, self.bits)


class _RepeatedRows:
    """Rows of several events, of which times and stamps differ."""

    __slots__ = ("add", "newest", "oldest")

    def __init__(self, add: Callable[[], None], event: tuple[bytes, int]) -> None:
        self.add = add
        self.oldest = self.newest = event
        """Stamps and times of the oldest and the newest event."""


class RowBuilder:
    """Builds the rows of events, one of each key for all of them. `begin` says which event comes next."""

    def __init__(self) -> None:
        self._by_kind: defaultdict[str, dict[tuple[Value, ...], _MergedRow]] = defaultdict(dict)
        self.time = 0
        self.producer = b""
        self.sequence = 0
        self._stamp = b""
        self._repeated: dict[Hashable, _RepeatedRows] = {}

    def begin(self, event: Event, append_time: int | None) -> None:
        self.time = cap_time(micros_of(event.time), append_time)
        self.producer = event.producer.bytes
        self.sequence = event.sequence
        self._stamp = make_stamp(self.time, self.producer, self.sequence)

    def repeat(self, key: Hashable, add: Callable[[], None]) -> None:
        """Call `add` for rows that all events of this key have in common, but for their times and stamps: of several
        events the oldest and the newest say it all. It is called when rows are drained."""
        known, stamp = self._repeated.get(key), self._stamp
        if known is None:
            self._repeated[key] = _RepeatedRows(add, (stamp, self.time))
        elif stamp > known.newest[0]:
            known.newest = stamp, self.time
        elif stamp < known.oldest[0]:
            known.oldest = stamp, self.time

    def drain(self) -> list[Row]:
        """Return the rows of all events since the last call."""
        repeated, self._repeated = self._repeated, {}
        for each in repeated.values():
            for self._stamp, self.time in {each.oldest, each.newest}:
                each.add()
        by_kind, self._by_kind = self._by_kind, defaultdict(dict)
        return [each.row(KIND_OF[name], key) for name, merged in by_kind.items() for key, each in merged.items()]

    def observed(
        self, kind: RowKind, key: tuple[Value, ...], maxima: tuple[Value, ...] = (), **groups: Sequence[Value]
    ) -> None:
        """Add a row that existed at the time of the event, with the column groups that the event sets."""
        merged, time = self._by_kind[kind.name], self.time
        found = merged.get(key)
        if found is None:
            values = self._groups(kind, groups) if groups else kind.empty_groups
            first, last = (time, time) if kind.has_times else (NOT_YET, NEVER)
            merged[key] = _MergedRow(first, last, maxima, values)
            return
        if kind.has_times:
            found.last = max(found.last, time)
            found.first = min(found.first, time)
        if found.maxima != maxima:
            found.maxima = combine_maxima(found.maxima, maxima)
        if groups:
            found.groups = combine_groups(kind, found.groups, self._groups(kind, groups))

    def deleted(self, kind: RowKind, key: tuple[Value, ...], at: int | None = None) -> None:
        """Add a row that was deleted at the time of the event, or at `at` if that is earlier."""
        found = self._without_times(kind, key, ())
        found.deleted = max(found.deleted, self.time if at is None else min(at, self.time))

    def constant(self, kind: RowKind, key: tuple[Value, ...], content: tuple[Value, ...] = ()) -> None:
        """Add a row that consists of its key and the content that belongs to it."""
        found = self._without_times(kind, key, content)
        if found.maxima != content:
            found.maxima = combine_maxima(found.maxima, content)

    def _without_times(self, kind: RowKind, key: tuple[Value, ...], maxima: tuple[Value, ...]) -> _MergedRow:
        merged = self._by_kind[kind.name]
        found = merged.get(key)
        if found is None:
            found = merged[key] = _MergedRow(NOT_YET, NEVER, maxima, kind.empty_groups)
        return found

    def ranked(self, kind: RowKind, key: tuple[Value, ...], group: str, values: tuple[Value, ...], rank: int) -> None:
        """Add a row with one column group. Values of a higher rank beat those of a lower rank, whatever their times."""
        self.observed(kind, key)
        found, stamped = self._by_kind[kind.name][key], GroupValues(b"%c%b" % (rank, self._stamp[1:]), values)
        groups = tuple([stamped if each.name == group else None for each in kind.groups])
        found.groups = combine_groups(kind, found.groups, groups)

    def numbered(self, kind: RowKind, key: tuple[Value, ...], bits: int) -> None:
        """Add a row with these bits."""
        self.observed(kind, key)
        self._by_kind[kind.name][key].bits |= bits

    def _groups(self, kind: RowKind, groups: dict[str, Sequence[Value]]) -> Groups:
        stamp = self._stamp
        if len(kind.groups) == 1:
            return (GroupValues(stamp, tuple(groups[kind.groups[0].name])),)
        return tuple(
            [GroupValues(stamp, tuple(groups[each.name])) if each.name in groups else None for each in kind.groups]
        )

    # What many events build.

    def dataset(self, dataset: DatasetId) -> None:
        self.constant(t.DATASET, _dataset_key(dataset))

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
            self.constant(t.CATALOG, (clean_text(catalog.type), clean_text(catalog.location)))
            self.observed(t.CATALOG_NAME, (clean_text(name), catalog_hash(catalog)))


@dataclass(frozen=True, slots=True)
class Place:
    """What rows say of a dataset that a job used, and how."""

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


_PLACES: Final[dict[tuple[Any, ...], Place]] = {}
_place_fields: Final = attrgetter("dataset", "table", "generation", "format", "branch", "opaque", "main")


def place_of(place: DatasetRef, how: tuple[Any, ...] = _NO_USE) -> Place:
    """Return what rows say of a dataset, and of how it is read or written: mode, tag, commit kind, what was replaced,
    what it was made from, schema id. Jobs use the same ones again and again, so it is remembered."""
    of = (*_place_fields(place), *how)
    found = _PLACES.get(of)
    if found is None:
        found = _new_place(place, how)
        if len(_PLACES) >= _MOST_PLACES:
            _PLACES.clear()
        if sum(len(each) for each in (*found.key, *(found.dataset or ())) if isinstance(each, str)) <= _LONGEST_PLACE:
            _PLACES[of] = found
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
        dataset=_dataset_key(dataset) if dataset is not None else None,
        generation=(number, generation) if is_known and place.generation is not None else None,
        alias=(number, *name) if is_known and place.table is not None else None,
    )


def _column_value(value: Any) -> Value:
    if isinstance(value, Enum):
        return str(value.value)
    return clean_text(value) if isinstance(value, str) else value  # type: ignore[no-any-return]


def make_stamp(time: int, producer: bytes, sequence: int) -> bytes:
    """Return the stamp of a fact of rank 0. Stamps order facts by rank, then by time, producer and sequence number."""
    return b"\0%b%b%b" % ((time + _OFFSET).to_bytes(8, "big"), producer, sequence.to_bytes(8, "big"))


def row_id(kind: RowKind, key: tuple[Value, ...]) -> bytes:
    """Return a row's id. Ids of rows that events repeat, above all names, are cached."""
    return hash_key(kind.name, key) if kind.partition else _known_id(kind.name, key)


@lru_cache(maxsize=1 << 16)
def _known_id(kind: str, key: tuple[Value, ...]) -> bytes:
    return hash_key(kind, key)


def cap_time(micros: int, append_time: int | None) -> int:
    """Limit a producer's time to the bus's time plus MAX_CLOCK_AHEAD."""
    return micros if append_time is None else min(micros, append_time + MAX_CLOCK_AHEAD)


def dataset_hash(dataset: DatasetId | None) -> bytes | None:
    return None if dataset is None else _known_id(t.DATASET.name, _dataset_key(dataset))


def _dataset_key(dataset: DatasetId) -> tuple[Value, ...]:
    return (clean_text(dataset.namespace), clean_text(dataset.name))


def catalog_hash(catalog: CatalogId | None) -> bytes | None:
    return (
        None if catalog is None else _known_id(t.CATALOG.name, (clean_text(catalog.type), clean_text(catalog.location)))
    )


def table_name_key(table: TableName | None) -> tuple[Value, ...]:
    return (
        NO_NAME if table is None else (clean_text(table.catalog), clean_text(table.database), clean_text(table.table))
    )


def job_name_key(job: JobName | None) -> tuple[Value, Value]:
    return (None, None) if job is None else (clean_text(job.namespace or DEFAULT_JOB_NAMESPACE), clean_text(job.name))


def qualified_job_name(namespace: str, job: str) -> str:
    """Return a job's name, with its namespace unless that is the default."""
    return job if namespace == DEFAULT_JOB_NAMESPACE else f"{namespace}/{job}"


def generation_text(generation: Generation | None) -> Value:
    return None if generation is None else clean_text(str(generation))


def uuid_bytes(uuid: UUID | None) -> Value:
    return None if uuid is None else uuid.bytes


def moment(time: datetime | None) -> Value:
    return None if time is None else micros_of(time)


def clean_text(text: str | None) -> Any:
    """Replace what databases refuse in a text: NUL characters (all but SQLite) and lone surrogates."""
    if text is None or (text.isascii() and "\0" not in text):
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def to_json_text(value: Any) -> str | None:
    """Serialize a value as JSON with sorted keys. Return None for None and for empty collections."""
    if value is None or (isinstance(value, (tuple, list, dict)) and not value):
        return None
    return str(clean_text(to_json(value, bytes_mode="hex", inf_nan_mode="strings").decode()))
