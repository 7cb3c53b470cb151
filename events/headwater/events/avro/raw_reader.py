"""Reading what stands in the bytes of an event as it stands there, without making a model of it.

For those who take in events by the ten thousand a second. What isn't written with today's schema, or isn't the plain
case in any other way, is for `Codec.decode`, which also says what is wrong with bytes.
"""

from __future__ import annotations

import io
import json
from functools import cache
from typing import Any, Final

from fastavro import parse_schema, schemaless_reader

from headwater.events.avro.codec import current_schema
from headwater.events.avro.framing import HEADER_BYTES, MAGIC
from headwater.events.envelope import Event
from headwater.events.kinds import KINDS

ENVELOPE: Final = tuple(name for name in Event.model_fields if name != "kind")
"""The fields that each kind begins with, in this order."""
LATEST: Final = 253_402_300_800_000_000
"""The year 10000, in microseconds: no calendar goes there."""


@cache
def kinds_by_header() -> dict[bytes, str]:
    """Which kind's newest schema the first bytes of an event name."""
    return {MAGIC + current_schema(kind).fingerprint: name for name, kind in KINDS.items()}


def kind_of(data: bytes) -> str | None:
    """The kind of an event that was written with its newest schema."""
    return kinds_by_header().get(data[:HEADER_BYTES])


def record_of(data: bytes, kind: str) -> dict[str, Any] | None:
    """All fields: times as microseconds, UUIDs as their bytes. None where it isn't the plain case."""
    source = io.BytesIO(data)
    record = _read(source, _full_schema(kind), kind)
    return record if source.tell() == len(data) else None


def envelope_of(data: bytes, kind: str) -> tuple[dict[str, Any], int] | None:
    """The envelope's fields, and where the others begin."""
    source = io.BytesIO(data)
    record = _read(source, _envelope(kind), kind)
    return None if record is None else (record, source.tell())


def _read(source: io.BytesIO, schema: Any, kind: str) -> dict[str, Any] | None:
    source.seek(HEADER_BYTES)
    try:
        record: Any = schemaless_reader(source, schema, None)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - whatever fastavro stumbles over, the codec says it better
        return None
    return record if _is_plain(record, kind) else None


def _is_plain(record: dict[str, Any], kind: str) -> bool:
    """A whole event of today's version whose numbers are what models ask of them."""
    counts: int = min(record["sequence"], record["family_sequence"])
    is_today = record["schema_version"] == current_schema(KINDS[kind]).version
    return is_today and counts >= 0 and bool(0 <= record["time"] < LATEST)


@cache
def _full_schema(kind: str) -> Any:
    return parse_schema(physical(json.loads(current_schema(KINDS[kind]).text)))


@cache
def _envelope(kind: str) -> Any:
    schema = physical(json.loads(current_schema(KINDS[kind]).text))
    fields = schema["fields"][: len(ENVELOPE)]
    if tuple(field["name"] for field in fields) != ENVELOPE:
        raise TypeError(f"{kind} doesn't begin with the envelope")
    return parse_schema({**schema, "fields": fields})


def physical(schema: Any) -> Any:
    """Without logical types, whose values fastavro would make objects of."""
    if isinstance(schema, dict):
        return {name: physical(value) for name, value in schema.items() if name != "logicalType"}
    return [physical(each) for each in schema] if isinstance(schema, list) else schema
