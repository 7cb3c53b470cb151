"""Reads from an event's bytes what the archive has columns for, by the schema that the event was written with.

It doesn't build the event's model: any released version of a kind is read as it stands, and the bytes stay the truth.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple
from uuid import UUID

from fastavro import parse_schema, schemaless_reader

from headwater.consumers.archive.arrow import pa
from headwater.events.avro import DecodeError
from headwater.events.avro.framing import SingleObject
from headwater.events.avro.raw_reader import LATEST, physical
from headwater.events.avro.schema_cache import SchemaCache, WriterSchema

UNDECODED: Final = "undecoded"
"""The kind of records that can't be decoded."""
TIME: Final = pa.timestamp("us", tz="UTC")
DECODED_FIELDS: Final = (
    pa.field("schema_version", pa.int32()),
    pa.field("event_time", TIME),
    pa.field("producer", pa.string()),
    pa.field("sequence", pa.int64()),
    pa.field("application", pa.string()),
    pa.field("job_namespace", pa.string()),
    pa.field("job", pa.string()),
    pa.field("run", pa.string()),
    pa.field("barrier", pa.int64()),
    pa.field("part", pa.int32()),
    pa.field("parts", pa.int32()),
    pa.field("datasets", pa.list_(pa.string())),
    pa.field("error", pa.string()),
)
"""What is read from its bytes. All are null where they can't be decoded, and `error` says why."""
_LONGEST_ERROR: Final = 300
_DATASET: Final = "DatasetId"
_NAMESPACE: Final = "dataset_namespace"
_NAME: Final = "dataset_name"
_TEXTS: Final = frozenset({"application", "JobName", _DATASET})
_MOST_IDS: Final = 100_000


class DecodedEvent(NamedTuple):
    """What is read from an event; the fields are those of the archive's columns, behind the kind."""

    kind: str = UNDECODED
    schema_version: int | None = None
    event_time: int | None = None
    producer: str | None = None
    sequence: int | None = None
    application: str | None = None
    job_namespace: str | None = None
    job: str | None = None
    run: str | None = None
    barrier: int | None = None
    part: int | None = None
    parts: int | None = None
    datasets: tuple[str, ...] | None = None
    error: str | None = None


class EventReader:
    """Reads events one by one, or as columns. Not thread-safe."""

    def __init__(self, schemas: SchemaCache | None = None) -> None:
        self._schemas = schemas or SchemaCache()
        self._framing = SingleObject()
        self._ids: dict[bytes, str] = {}

    def read(self, data: Sequence[bytes]) -> tuple[Any, list[Any]]:
        """Return the kinds, and the other columns in the archive's order."""
        return to_columns(map(self.read_one, data))

    def read_one(self, data: bytes) -> DecodedEvent:
        try:
            framed = self._framing.open(data, self._schemas)
        except DecodeError as e:
            return _failed(e)
        if framed.schema is None:
            return DecodedEvent(error=f"schema {framed.fingerprint.hex()} isn't known to this version of headwater")
        try:
            return self._decoded(data, framed.offset, framed.schema)
        except MemoryError:
            raise
        except Exception as e:  # noqa: BLE001 - the bytes can be anything
            return _failed(e)

    def _decoded(self, data: bytes, offset: int, schema: WriterSchema) -> DecodedEvent:
        source = io.BytesIO(data)
        source.seek(offset)
        record: Any = schemaless_reader(source, _readable(schema.text), None)
        if source.tell() != len(data):
            raise ValueError(f"{len(data) - source.tell()} bytes too many")
        if not 0 <= record["time"] < LATEST:
            raise ValueError(f"the time {record['time']} is none")
        job, part = record["job"] or {}, record["part"] or {}
        return DecodedEvent(
            schema.kind,
            record["schema_version"],
            record["time"],
            self.id_text(record["producer"]),
            record["sequence"],
            record["application"],
            job.get("namespace"),
            job.get("name"),
            None if record["run"] is None else self.id_text(record["run"]),
            record.get("barrier"),
            part.get("number"),
            part.get("of"),
            tuple(dict.fromkeys(_datasets_in(record))),
        )

    def id_text(self, data: bytes) -> str:
        """Return a UUID as text. A producer and a run have many events."""
        known = self._ids.get(data)
        if known is None:
            if len(self._ids) >= _MOST_IDS:
                self._ids.clear()
            known = self._ids[data] = str(UUID(bytes=data))
        return known


def to_columns(events: Iterable[DecodedEvent]) -> tuple[Any, list[Any]]:
    """Return the kinds, and the other columns in the archive's order."""
    kinds, *others = list(zip(*events, strict=True)) or [()] * len(DecodedEvent._fields)
    arrays = [_array(values, field.type) for values, field in zip(others, DECODED_FIELDS, strict=True)]
    return pa.array(kinds, pa.string()), arrays


def _array(values: Sequence[Any], kind: Any) -> Any:
    return pa.array(values, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array(values, kind)


def dataset_text(namespace: str, name: str) -> str:
    """Return a dataset as `str(DatasetId)` has it."""
    return f"{namespace}/{name.lstrip('/')}"


def _datasets_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if _NAMESPACE in value:
            yield dataset_text(value[_NAMESPACE], value[_NAME])
            return
        for each in value.values():
            yield from _datasets_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _datasets_in(each)


def _failed(error: Exception) -> DecodedEvent:
    text = str(error) if isinstance(error, DecodeError | ValueError) else f"{type(error).__name__}: {error}"
    return DecodedEvent(error=text[:_LONGEST_ERROR])


@cache
def _readable(text: str) -> Any:
    return parse_schema(_with_marked_datasets(physical(json.loads(text)), is_text=False))


def _with_marked_datasets(schema: Any, *, is_text: bool) -> Any:
    """Return a schema of the same bytes, in which datasets can be recognised and texts without a column are bytes."""
    if isinstance(schema, list):
        return [_with_marked_datasets(each, is_text=is_text) for each in schema]
    if schema == "string":
        return "string" if is_text else "bytes"
    if not isinstance(schema, dict):
        return schema
    inner = {name: _with_marked_datasets(schema[name], is_text=False) for name in ("items", "values") if name in schema}
    if schema["type"] == "record":
        inner["fields"] = [_marked_field(each, schema["name"]) for each in schema["fields"]]
    elif not isinstance(schema["type"], str):
        inner["type"] = _with_marked_datasets(schema["type"], is_text=is_text)
    return {**schema, **inner}


def _marked_field(field: dict[str, Any], record: str) -> dict[str, Any]:
    name = field["name"]
    is_text = record in _TEXTS or name in _TEXTS
    kind = _with_marked_datasets(field["type"], is_text=is_text)
    return {"name": f"dataset_{name}" if record == _DATASET else name, "type": kind}
