"""The stamp and time of an event, and the rows that many kinds of events tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from pydantic_core import to_json

from headwater.events.clock import micros_of
from headwater.events.envelope import Event
from headwater.events.jobs import Place
from headwater.events.names import DEFAULT_JOB_NAMESPACE, CatalogId, DatasetId, JobName, Life, TableName
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.kinds import NO_SPAN, Kind, Row, Span, Told
from headwater.lineage.rows.values import Value, hash_of

AHEAD: Final = 5 * 60 * 1_000_000
"""So much may a producer's clock be ahead of the bus, in microseconds."""
_OFFSET: Final = 2**63
NO_NAME: Final = (None, None, None)


class Telling:
    """One event on its way into rows."""

    def __init__(self, event: Event, appended: int | None) -> None:
        self.time = capped(micros_of(event.time), appended)
        self.producer = event.producer.bytes
        self.sequence = event.sequence
        self._stamps: dict[int, bytes] = {}
        self._span = Span(first=self.time, last=self.time)

    def stamp(self, rank: int = 0) -> bytes:
        """Facts of a higher rank beat those of a lower one, whenever they were told."""
        stamp = self._stamps.get(rank)
        if stamp is None:
            stamp = self._stamps[rank] = stamp_of(self.time, self.producer, self.sequence, rank)
        return stamp

    def seen(self, kind: Kind, /, *key: Value, **groups: Sequence[Value]) -> Row:
        """A row that was there at the time of the event, with the groups that it tells."""
        span = self._span if kind.mortal else NO_SPAN
        return Row(kind, row_id(kind, key), key, (), span, self._told(kind, groups))

    def gone(self, kind: Kind, *key: Value, at: int | None = None) -> Row:
        """A row that was taken away, up to the time of the event."""
        span = Span(deleted=self.time if at is None else min(at, self.time))
        return Row(kind, row_id(kind, key), key, (), span, kind.blank)

    def fixed(self, kind: Kind, key: tuple[Value, ...], fixed: tuple[Value, ...] = ()) -> Row:
        """A row that says all by what it is."""
        return Row(kind, row_id(kind, key), key, fixed, NO_SPAN, kind.blank)

    def _told(self, kind: Kind, groups: dict[str, Sequence[Value]]) -> tuple[Told | None, ...]:
        if not groups:
            return kind.blank
        stamp = self.stamp()
        if len(kind.groups) == 1:
            return (Told(stamp, tuple(groups[kind.groups[0].name])),)
        return tuple([Told(stamp, tuple(groups[each.name])) if each.name in groups else None for each in kind.groups])

    # What many events tell.

    def dataset(self, dataset: DatasetId) -> Iterator[Row]:
        yield self.fixed(t.DATASET, _dataset_key(dataset))

    def life(self, dataset: DatasetId, life: Life | None, table_format: str | None) -> Iterator[Row]:
        if life is not None:
            known = {} if table_format in {None, "UNKNOWN"} else {"stored": (table_format,)}
            yield self.seen(t.LIFE, dataset_hash(dataset), life_of(life), **known)

    def alias(self, dataset: DatasetId, table: TableName | None) -> Iterator[Row]:
        if table is not None:
            yield self.seen(t.ALIAS, dataset_hash(dataset), *name_of(table))

    def place(self, place: Place) -> Iterator[Row]:
        """A dataset that a job has to do with: that it is there, in this life, by this name."""
        if place.dataset is not None:
            yield from self.dataset(place.dataset)
            yield from self.life(place.dataset, place.life, place.format.value)
            yield from self.alias(place.dataset, place.table)

    def catalog(self, name: str, catalog: CatalogId | None) -> Iterator[Row]:
        if catalog is not None:
            yield self.fixed(t.CATALOG, (clean(catalog.type), clean(catalog.location)))
            yield self.seen(t.CATALOG_NAME, clean(name), catalog_hash(catalog))


def stamp_of(time: int, producer: bytes, sequence: int, rank: int = 0) -> bytes:
    """Of a fact: those of a higher rank are newer, then those of a later time."""
    return b"%c%b%b%b" % (rank, (time + _OFFSET).to_bytes(8, "big"), producer, sequence.to_bytes(8, "big"))


def row_id(kind: Kind, key: tuple[Value, ...]) -> bytes:
    """Of what events tell again and again, names above all, it is remembered."""
    return hash_of(kind.name, key) if kind.partition else _known_id(kind.name, key)


@lru_cache(maxsize=1 << 16)
def _known_id(kind: str, key: tuple[Value, ...]) -> bytes:
    return hash_of(kind, key)


def capped(micros: int, appended: int | None) -> int:
    return micros if appended is None else min(micros, appended + AHEAD)


def dataset_hash(dataset: DatasetId | None) -> bytes | None:
    return None if dataset is None else _known_id(t.DATASET.name, _dataset_key(dataset))


def _dataset_key(dataset: DatasetId) -> tuple[Value, ...]:
    return (clean(dataset.namespace), clean(dataset.name))


def catalog_hash(catalog: CatalogId | None) -> bytes | None:
    return None if catalog is None else _known_id(t.CATALOG.name, (clean(catalog.type), clean(catalog.location)))


def name_of(table: TableName | None) -> tuple[Value, ...]:
    return NO_NAME if table is None else (clean(table.catalog), clean(table.database), clean(table.table))


def job_of(job: JobName | None) -> tuple[Value, Value]:
    return (None, None) if job is None else (clean(job.namespace or DEFAULT_JOB_NAMESPACE), clean(job.name))


def job_text(namespace: str, job: str) -> str:
    """One text for a job: two of one name in two namespaces are two jobs."""
    return job if namespace == DEFAULT_JOB_NAMESPACE else f"{namespace}/{job}"


def life_of(life: Life | None) -> Value:
    return None if life is None else clean(str(life))


def id_of(uuid: UUID | None) -> Value:
    return None if uuid is None else uuid.bytes


def moment(time: datetime | None) -> Value:
    return None if time is None else micros_of(time)


def clean(text: str | None) -> Any:
    """No database but SQLite takes the character of code 0; halves of surrogate pairs are no text anywhere."""
    if text is None or (text.isascii() and "\0" not in text):
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def json_of(value: Any) -> str | None:
    """None for what says nothing. Keys of mappings are in order, so that one content is one text."""
    if value is None or (isinstance(value, (tuple, list, dict)) and not value):
        return None
    return str(clean(to_json(value, bytes_mode="hex", inf_nan_mode="strings").decode()))
