"""What stands beside an event's bytes, in a spool and on a bus: its key, and headers that tell what it is.

Capture writes both, and whoever passes the event on keeps them as they are: so an event can be routed, filtered by its
family and recognised as a duplicate without decoding it, also by a version of headwater that doesn't know its kind.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final, TypeAlias

from headwater.events.administration import CatalogOptionsDeclared, DatasetsUnified, LineageDeleted
from headwater.events.catalog import CatalogContext, CatalogModification, DatabaseModification, TableModification
from headwater.events.envelope import Event
from headwater.events.names import DEFAULT_JOB_NAMESPACE, DatasetId, JobName

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
    return key if len(key) <= LONGEST_KEY else _shortened(key)


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


def _shortened(key: bytes) -> bytes:
    begin = key[:_LONGEST_BEGINNING].decode("utf-8", "ignore").encode()
    return begin + b"#" + sha256(key).hexdigest().encode()
