"""The values that keys of rows consist of: cleaned texts, names, and hashes of what has a name of its own."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from pydantic_core import to_json

from headwater.events.clock import micros_of
from headwater.events.names import DEFAULT_JOB_NAMESPACE, CatalogId, DatasetId, Generation, JobName, TableName
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.model import RowKind
from headwater.lineage.rows.values import Value

NO_NAME: Final = (None, None, None)


def row_id(kind: RowKind, key: tuple[Value, ...]) -> bytes:
    """Return a row's id. Ids of rows that events repeat, above all names, are cached."""
    return kind.hash_key(*key) if kind.partition else _known_id(kind.name, key)


@lru_cache(maxsize=1 << 16)
def _known_id(kind: str, key: tuple[Value, ...]) -> bytes:
    return t.KIND_OF[kind].hash_key(*key)


def dataset_hash(dataset: DatasetId | None) -> bytes | None:
    return None if dataset is None else _known_id(t.DATASET.name, dataset_key(dataset))


def dataset_key(dataset: DatasetId) -> tuple[Value, ...]:
    return (clean_text(dataset.namespace), clean_text(dataset.name))


def catalog_hash(catalog: CatalogId | None) -> bytes | None:
    return None if catalog is None else _known_id(t.CATALOG.name, catalog_key(catalog))


def catalog_key(catalog: CatalogId) -> tuple[Value, ...]:
    return (clean_text(catalog.type), clean_text(catalog.location))


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
