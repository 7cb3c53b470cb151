"""Builds the rows of one event: times, stamps, keys, and rows that many kinds of events share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from pydantic_core import to_json

from headwater.events.clock import micros_of
from headwater.events.envelope import Event
from headwater.events.jobs import CommitEvidence, Committed, DatasetRef
from headwater.events.names import DEFAULT_JOB_NAMESPACE, CatalogId, DatasetId, Generation, JobName, TableName
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.model import NO_TIMES, GroupValues, Row, RowKind, RowTimes
from headwater.lineage.rows.values import Value, hash_key

MAX_CLOCK_AHEAD: Final = 5 * 60 * 1_000_000
"""How far a producer's clock may be ahead of the bus, in microseconds. Later times are cut to this."""
_OFFSET: Final = 2**63
NO_NAME: Final = (None, None, None)
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


class RowBuilder:
    """Builds the rows of one event."""

    def __init__(self, event: Event, append_time: int | None) -> None:
        self.time = cap_time(micros_of(event.time), append_time)
        self.producer = event.producer.bytes
        self.sequence = event.sequence
        self._stamps: dict[int, bytes] = {}
        self._span = RowTimes(first=self.time, last=self.time)

    def stamp(self, rank: int = 0) -> bytes:
        """Return the event's stamp. Facts of a higher rank beat those of a lower rank, whatever their times."""
        stamp = self._stamps.get(rank)
        if stamp is None:
            stamp = self._stamps[rank] = make_stamp(self.time, self.producer, self.sequence, rank)
        return stamp

    def observed(self, kind: RowKind, /, *key: Value, **groups: Sequence[Value]) -> Row:
        """Build a row that existed at the time of the event, with the column groups that the event sets."""
        span = self._span if kind.has_times else NO_TIMES
        return Row(kind, row_id(kind, key), key, (), span, self._group_values(kind, groups))

    def deleted(self, kind: RowKind, *key: Value, at: int | None = None) -> Row:
        """Build a row that was deleted at the time of the event, or at `at` if that is earlier."""
        span = RowTimes(deleted=self.time if at is None else min(at, self.time))
        return Row(kind, row_id(kind, key), key, (), span, kind.empty_groups)

    def constant(self, kind: RowKind, key: tuple[Value, ...], content: tuple[Value, ...] = ()) -> Row:
        """Build a row that consists of its key and the content that belongs to it."""
        return Row(kind, row_id(kind, key), key, content, NO_TIMES, kind.empty_groups)

    def _group_values(self, kind: RowKind, groups: dict[str, Sequence[Value]]) -> tuple[GroupValues | None, ...]:
        if not groups:
            return kind.empty_groups
        stamp = self.stamp()
        if len(kind.groups) == 1:
            return (GroupValues(stamp, tuple(groups[kind.groups[0].name])),)
        return tuple(
            [GroupValues(stamp, tuple(groups[each.name])) if each.name in groups else None for each in kind.groups]
        )

    # What many events build.

    def dataset(self, dataset: DatasetId) -> Iterator[Row]:
        yield self.constant(t.DATASET, _dataset_key(dataset))

    def generation(self, dataset: DatasetId, generation: Generation | None, table_format: str | None) -> Iterator[Row]:
        if generation is not None:
            known = {} if table_format in {None, "UNKNOWN"} else {"stored": (table_format,)}
            yield self.observed(t.GENERATION, dataset_hash(dataset), generation_text(generation), **known)

    def alias(self, dataset: DatasetId, table: TableName | None) -> Iterator[Row]:
        if table is not None:
            yield self.observed(t.ALIAS, dataset_hash(dataset), *table_name_key(table))

    def place(self, place: DatasetRef) -> Iterator[Row]:
        """Yield the rows of a dataset that a job used: that it exists, in this generation, under this name."""
        if place.dataset is not None:
            yield from self.dataset(place.dataset)
            yield from self.generation(place.dataset, place.generation, place.format.value)
            yield from self.alias(place.dataset, place.table)

    def catalog(self, name: str, catalog: CatalogId | None) -> Iterator[Row]:
        if catalog is not None:
            yield self.constant(t.CATALOG, (clean_text(catalog.type), clean_text(catalog.location)))
            yield self.observed(t.CATALOG_NAME, clean_text(name), catalog_hash(catalog))


def make_stamp(time: int, producer: bytes, sequence: int, rank: int = 0) -> bytes:
    """Return the stamp of a fact. Stamps order facts by rank, then by time, producer and sequence number."""
    return b"%c%b%b%b" % (rank, (time + _OFFSET).to_bytes(8, "big"), producer, sequence.to_bytes(8, "big"))


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
