"""Reads from an event's bytes what the archive has columns for, by the schema that the event was written with.

It doesn't build the event's model: any released version of a kind is read as it stands, and the bytes stay the truth.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import count
from typing import Any, Final, NamedTuple
from uuid import UUID

from fastavro import parse_schema, schemaless_reader

from headwater.consumers.archive.arrow import pa
from headwater.events.avro import DecodeError
from headwater.events.avro.framing import SingleObject
from headwater.events.avro.schema_cache import SchemaCache, WriterSchema
from headwater.events.redaction import redacted_excerpt

UNDECODED: Final = "undecoded"
"""The kind of records that can't be decoded."""
TIME: Final = pa.timestamp("us", tz="UTC")
DECODED_FIELDS: Final = (
    pa.field("kind", pa.string()),
    pa.field("schema_version", pa.int32()),
    pa.field("event_time", TIME),
    pa.field("producer", pa.string()),
    pa.field("sequence", pa.int64()),
    pa.field("application", pa.string()),
    pa.field("job_namespace", pa.string()),
    pa.field("job", pa.string()),
    pa.field("run", pa.string()),
    pa.field("barrier", pa.int64()),
    pa.field("datasets", pa.list_(pa.string())),
    pa.field("error", pa.string()),
)
"""What is read from its bytes. All but `kind` are null where they can't be decoded, and `error` says why."""
_LONGEST_ERROR: Final = 300
_DATASET: Final = "DatasetId"
_NAMESPACE: Final = "dataset_namespace"
_NAME: Final = "dataset_name"
_PAIRS: Final = count()
_INT: Final = 1 << 31
_LONG: Final = 1 << 63
_FIRST_TIME: Final = -62_135_596_800_000_000
_LAST_TIME: Final = 253_402_300_799_999_999
"""From year 1 to year 9999, in microseconds: what events go by."""


class DecodedEvent(NamedTuple):
    """What is read from an event; the fields are those of the archive's columns."""

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
    datasets: tuple[str, ...] | None = None
    error: str | None = None


class EventReader:
    """Reads single events. Not thread-safe."""

    def __init__(self) -> None:
        self._schemas = SchemaCache()
        self._framing = SingleObject()

    def read(self, data: bytes) -> DecodedEvent:
        try:
            framed = self._framing.open(data, self._schemas)
            if framed.schema is None:
                return DecodedEvent(error=f"schema {framed.fingerprint.hex()} isn't known to this version of headwater")
            return _decode(data, framed.offset, framed.schema)
        except MemoryError:
            raise
        except Exception as e:  # noqa: BLE001 - the bytes can be anything
            return _failure(e)


def to_columns(events: Iterable[DecodedEvent]) -> list[Any]:
    """Return the columns in the archive's order."""
    columns = list(zip(*events, strict=True)) or [()] * len(DecodedEvent._fields)
    return [
        pa.array(values, pa.int64()).cast(TIME) if field.type == TIME else pa.array(values, field.type)
        for values, field in zip(columns, DECODED_FIELDS, strict=True)
    ]


def _decode(data: bytes, offset: int, schema: WriterSchema) -> DecodedEvent:
    source = io.BytesIO(data)
    source.seek(offset)
    record: Any = schemaless_reader(source, _readable(schema.text), None)
    if source.tell() != len(data):
        raise ValueError(f"{len(data) - source.tell()} bytes too many")
    if not _FIRST_TIME <= record["time"] <= _LAST_TIME:
        raise ValueError(f"the time {record['time']} is none")
    job = record["job"] or {}
    return DecodedEvent(
        schema.kind,
        _number(record["schema_version"], _INT),
        record["time"],
        _id(record["producer"]),
        _number(record["sequence"], _LONG),
        _text(record["application"]),
        _text(job.get("namespace")),
        _text(job.get("name")),
        None if record["run"] is None else _id(record["run"]),
        _number(record.get("barrier"), _LONG),
        tuple(dict.fromkeys(_datasets_in(record))),
    )


def _id(data: bytes) -> str:
    return str(UUID(bytes=data))


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def _number(value: int | None, limit: int) -> int | None:
    if value is not None and not -limit <= value < limit:
        raise ValueError(f"the number {value} is too large")
    return value


def _datasets_in(value: Any) -> Iterator[str]:
    """Yield the datasets as `str(DatasetId)` has them."""
    if isinstance(value, dict):
        if _NAMESPACE in value:
            yield f"{value[_NAMESPACE].decode()}/{value[_NAME].decode().lstrip('/')}"
            return
        for each in value.values():
            yield from _datasets_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _datasets_in(each)


def _failure(error: Exception) -> DecodedEvent:
    if isinstance(error, EOFError | IndexError):
        return DecodedEvent(error="the bytes end too early")
    text = str(error) if isinstance(error, DecodeError | ValueError) else f"{type(error).__name__}: {error}"
    return DecodedEvent(error=redacted_excerpt(text, _LONGEST_ERROR))


@cache
def _readable(text: str) -> Any:
    return parse_schema(_without_logical_types(json.loads(text)))


def _without_logical_types(schema: Any) -> Any:
    """Return a schema of the same bytes without logical types, in which datasets can be recognised and texts are bytes.

    A map is written as a list of pairs is: so its keys are bytes too.
    """
    if isinstance(schema, list):
        return [_without_logical_types(each) for each in schema]
    if not isinstance(schema, dict):
        return "bytes" if schema == "string" else schema
    kind = schema["type"]
    if kind == "record":
        fields = [_marked_field(each, schema["name"]) for each in schema["fields"]]
        return {"type": "record", "name": schema["name"], "fields": fields}
    if kind == "array":
        return {"type": "array", "items": _without_logical_types(schema["items"])}
    if kind == "map":
        return {"type": "array", "items": _pair(_without_logical_types(schema["values"]))}
    plain = {name: value for name, value in schema.items() if name != "logicalType"}
    return plain if kind in {"enum", "fixed"} else _without_logical_types(kind)


def _pair(values: Any) -> Any:
    name = f"Pair{next(_PAIRS)}"  # each type of a schema has another name
    fields = [{"name": "key", "type": "bytes"}, {"name": "value", "type": values}]
    return {"type": "record", "name": name, "fields": fields}


def _marked_field(field: dict[str, Any], record: str) -> dict[str, Any]:
    name = f"dataset_{field['name']}" if record == _DATASET else field["name"]
    return {"name": name, "type": _without_logical_types(field["type"])}
