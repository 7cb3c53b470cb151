"""What stands beside an event's bytes, in a spool and on a bus: its key, and headers that tell what it is.

Capture writes both, and whoever passes the event on keeps them as they are: so an event can be routed, filtered by its
family and recognised as a duplicate without decoding it, also by a version of headwater that doesn't know its kind.

The names that an event mentions: jobs, catalogs and datasets, each by all names that people use for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final, TypeAlias

from headwater.events.administration import CatalogOptionsDeclared, DatasetsUnified, LineageDeleted
from headwater.events.base import Model
from headwater.events.catalog import (
    CatalogContext,
    CatalogModification,
    DatabaseModification,
    DatabaseName,
    TableModification,
)
from headwater.events.envelope import Event
from headwater.events.names import DEFAULT_JOB_NAMESPACE, DatasetId, JobName, TableName


def name_pattern(text: str) -> re.Pattern[str]:
    """Read a name in which `*` stands for anything."""
    return re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)


def jobs_in(event: Event) -> Iterator[str]:
    """Yield the jobs that the event is of or about, and the parent: who asks for an application wants its steps."""
    for value in (event.job, getattr(event, "parent_job", None), getattr(event, "of_job", None)):
        if isinstance(value, JobName):
            yield from (value.name, str(value))


def datasets_in(value: Any) -> Iterator[str]:
    """Yield every dataset and table in it, by each name that people use: `c.d.t`, `d.t`, `t`, the dataset's own."""
    if isinstance(value, TableName):
        full = str(value)
        yield from (full, f"{value.database}.{value.table}", value.table)
    elif isinstance(value, DatasetId):
        yield from (str(value), value.name)
    else:
        for each in _below(value):
            yield from datasets_in(each)


def catalogs_in(value: Any) -> Iterator[str]:
    """Yield the names of all catalogs in it."""
    if isinstance(value, (TableName, DatabaseName)):
        yield value.catalog
    elif isinstance(value, CatalogContext):
        yield value.name
    else:
        for each in _below(value):
            yield from catalogs_in(each)


def _below(value: Any) -> Iterator[Any]:
    if isinstance(value, Model):
        for name in type(value).model_fields:
            yield getattr(value, name)
    elif isinstance(value, tuple):
        yield from value


Headers: TypeAlias = tuple[tuple[str, bytes], ...]

KIND: Final = "kind"
FAMILY: Final = "family"
PRODUCER: Final = "producer"
SEQUENCE: Final = "sequence"
SCHEMA: Final = "schema"
"""The fingerprint of the schema that the bytes were written with, in hexadecimal digits."""

LONGEST_KEY: Final = 512
_LONGEST_BEGINNING: Final = 440


def key_of(event: Event) -> bytes:
    """The key of an event: events of one key keep their order on every bus.

    | event | key |
    |---|---|
    | catalog: a table or view | its dataset; where that isn't known, the catalog and the name in it |
    | catalog: a database | the catalog and the database's name |
    | job: all of them | `namespace/name` of the job; the producer where there is no job |
    | administration | the job, catalog or dataset that it is about; the producer where there is none |

    UTF-8, at most `LONGEST_KEY` bytes: a longer one ends in a digest of the whole.
    """
    key = _subject(event).encode("utf-8", "backslashreplace")
    return key if len(key) <= LONGEST_KEY else _shorten(key)


def headers_of(event: Event, schema: bytes) -> Headers:
    """The headers of an event; `schema` is the fingerprint of the schema that its bytes were written with."""
    return (
        (KIND, event.kind.encode()),
        (FAMILY, event.family.value.encode()),
        (PRODUCER, str(event.producer).encode()),
        (SCHEMA, schema.hex().encode()),
        (SEQUENCE, str(event.sequence).encode()),  # last, being what differs: journals make use of that
    )


def _subject(event: Event) -> str:
    if isinstance(event, CatalogModification):
        return _place(event)
    if isinstance(event, LineageDeleted):
        return _job(event.of_job) if event.of_job else _dataset(event.dataset) if event.dataset else str(event.producer)
    if isinstance(event, CatalogOptionsDeclared):
        return _catalog(event.context)
    if isinstance(event, DatasetsUnified):
        return _dataset(event.dataset)
    return _job(event.job) if event.job else str(event.producer)


def _place(event: CatalogModification) -> str:
    if isinstance(event, TableModification):
        return _dataset(event.dataset) if event.dataset else f"{_catalog(event.context)}/{event.identifier}"
    if isinstance(event, DatabaseModification):
        return f"{_catalog(event.context)}/{event.identifier.database}"
    return _catalog(event.context)


def _job(job: JobName) -> str:
    return f"{job.namespace or DEFAULT_JOB_NAMESPACE}/{job.name}"


def _dataset(dataset: DatasetId) -> str:
    return f"{dataset.namespace}/{dataset.name}"


def _catalog(context: CatalogContext) -> str:
    return f"{context.id.type}:{context.id.location}" if context.id else context.name


def _shorten(key: bytes) -> bytes:
    begin = key[:_LONGEST_BEGINNING].decode("utf-8", "ignore").encode()
    return begin + b"#" + sha256(key).hexdigest().encode()
