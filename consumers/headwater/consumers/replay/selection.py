"""Which events belong to a job, a dataset or a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from headwater.consumers.sources import BusRecord
from headwater.events.avro import Codec, DecodeError, UnknownEvent
from headwater.events.envelope import Event
from headwater.events.names import DatasetId, JobName, TableName


@dataclass(frozen=True)
class EventSelection:
    """Events that meet all conditions that are given."""

    job: JobName | None = None
    """Events of the job, of its steps, and of the runs of both."""
    dataset: str | None = None
    """Events that name the dataset so: by its place, or by a name of a catalog, `database.table` or in full."""
    since: int | None = None
    """Events that the bus appended at this time or later, in microseconds; without a bus's time all."""

    def select(self, records: tuple[BusRecord, ...], codec: Codec) -> tuple[BusRecord, ...]:
        """Return the records of events that meet the conditions. What can't be decoded meets none."""
        return tuple(each for each in records if self._is_recent(each) and self._is_about(each.data, codec))

    def _is_recent(self, record: BusRecord) -> bool:
        return self.since is None or record.append_time is None or record.append_time >= self.since

    def _is_about(self, data: bytes, codec: Codec) -> bool:
        if self.job is None and self.dataset is None:
            return True
        try:
            found = codec.decode(data)
        except DecodeError:
            return False
        event = found.known if isinstance(found, UnknownEvent) else found
        return isinstance(event, Event) and self.matches(event)

    def matches(self, event: Event) -> bool:
        names = list(_names(event))
        is_job = self.job is None or any(_is_same_job(each, self.job) for each in names if isinstance(each, JobName))
        return is_job and (self.dataset is None or any(_is_called(each, self.dataset) for each in names))


def _names(value: Any) -> Iterator[DatasetId | TableName | JobName]:
    """Yield all names in an event."""
    if isinstance(value, (DatasetId, TableName, JobName)):
        yield value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _names(getattr(value, name))
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _names(each)


def _is_same_job(one: JobName, other: JobName) -> bool:
    return (one.namespace or "default", one.name) == (other.namespace or "default", other.name)


def _is_called(name: DatasetId | TableName | JobName, text: str) -> bool:
    if isinstance(name, DatasetId):
        return text in {str(name), f"{name.namespace}|{name.name}", name.name}
    return isinstance(name, TableName) and (str(name) == text or str(name).endswith(f".{text}"))
