"""Reads from an event's bytes what the archive has columns for, by the schema that the event was written with.

It doesn't build the event's model: any released version of a kind is read as it stands, and the bytes stay the truth.
Events of one schema are read together where that is quicker; the result is the same.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import count
from typing import Any, Final, NamedTuple
from uuid import UUID

from fastavro import parse_schema, schemaless_reader

from headwater.consumers.archive.arrow import pa
from headwater.events.avro import DecodeError
from headwater.events.avro.column_reader import DATASET
from headwater.events.avro.framing import Framed, SingleObject
from headwater.events.avro.raw_reader import physical
from headwater.events.avro.schema_cache import SchemaCache, WriterSchema
from headwater.events.redaction import redacted_excerpt

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
_NAMESPACE: Final = "dataset_namespace"
_NAME: Final = "dataset_name"
_MOST_IDS: Final = 100_000
_INT: Final = 1 << 31
_PAIRS: Final = count()
_LONG: Final = 1 << 63
FIRST_TIME: Final = -62_135_596_800_000_000
LAST_TIME: Final = 253_402_300_799_999_999
"""From year 1 to year 9999, in microseconds: what events go by."""


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
    """Reads single events. Not thread-safe."""

    def __init__(self, schemas: SchemaCache | None = None) -> None:
        self._schemas = schemas or SchemaCache()
        self._framing = SingleObject()
        self._ids: dict[bytes, str] = {}

    def schema_of(self, data: bytes) -> Framed:
        """Return the schema that the bytes name. Raises a DecodeError if they name none."""
        return self._framing.open(data, self._schemas)

    def read(self, data: bytes) -> DecodedEvent:
        try:
            framed = self.schema_of(data)
            if framed.schema is None:
                return DecodedEvent(error=f"schema {framed.fingerprint.hex()} isn't known to this version of headwater")
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
        if not FIRST_TIME <= record["time"] <= LAST_TIME:
            raise ValueError(f"the time {record['time']} is none")
        job, part = record["job"] or {}, record["part"] or {}
        return DecodedEvent(
            schema.kind,
            _number(record["schema_version"], _INT),
            record["time"],
            self.id_text(record["producer"]),
            _number(record["sequence"], _LONG),
            _text(record["application"]),
            _text(job.get("namespace")),
            _text(job.get("name")),
            None if record["run"] is None else self.id_text(record["run"]),
            _number(record.get("barrier"), _LONG),
            _number(part.get("number"), _INT),
            _number(part.get("of"), _INT),
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


def to_columns(events: Iterable[DecodedEvent]) -> list[Any]:
    """Return the kinds, and the other columns in the archive's order."""
    columns = list(zip(*events, strict=True)) or [()] * len(DecodedEvent._fields)
    types = [pa.string(), *(each.type for each in DECODED_FIELDS)]
    return [_array(values, kind) for values, kind in zip(columns, types, strict=True)]


def _array(values: Sequence[Any], kind: Any) -> Any:
    return pa.array(values, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array(values, kind)


def dataset_text(namespace: bytes, name: bytes) -> str:
    """Return a dataset as `str(DatasetId)` has it."""
    return f"{namespace.decode()}/{name.decode().lstrip('/')}"


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def _number(value: int | None, limit: int) -> int | None:
    if value is not None and not -limit <= value < limit:
        raise ValueError(f"the number {value} is too large")
    return value


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
    if isinstance(error, EOFError | IndexError):
        return DecodedEvent(error="the bytes end too early")
    text = str(error) if isinstance(error, DecodeError | ValueError) else f"{type(error).__name__}: {error}"
    return DecodedEvent(error=redacted_excerpt(text, _LONGEST_ERROR))


@cache
def _readable(text: str) -> Any:
    return parse_schema(_with_marked_datasets(physical(json.loads(text))))


def _with_marked_datasets(schema: Any) -> Any:
    """Return a schema of the same bytes, in which datasets can be recognised and texts are bytes.

    A map is written as a list of pairs is: so its keys are bytes too.
    """
    if isinstance(schema, list):
        return [_with_marked_datasets(each) for each in schema]
    if not isinstance(schema, dict):
        return "bytes" if schema == "string" else schema
    kind = schema["type"]
    if kind == "record":
        fields = [_marked_field(each, schema["name"]) for each in schema["fields"]]
        return {"type": "record", "name": schema["name"], "fields": fields}
    if kind == "array":
        return {"type": "array", "items": _with_marked_datasets(schema["items"])}
    if kind == "map":
        return {"type": "array", "items": _pair(_with_marked_datasets(schema["values"]))}
    return schema if isinstance(kind, str) and kind != "string" else _with_marked_datasets(kind)


def _pair(values: Any) -> Any:
    name = f"Pair{next(_PAIRS)}"  # each type of a schema has another name
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": "key", "type": "bytes"}, {"name": "value", "type": values}],
    }


def _marked_field(field: dict[str, Any], record: str) -> dict[str, Any]:
    name = f"dataset_{field['name']}" if record == DATASET else field["name"]
    return {"name": name, "type": _with_marked_datasets(field["type"])}
