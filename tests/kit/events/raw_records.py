"""What stands in the bytes of an event, as it stands there: times as microseconds, UUIDs as their bytes."""

from __future__ import annotations

import io
import json
from functools import cache
from typing import Any

from fastavro import parse_schema, schemaless_reader

from headwater.events.avro import current_schema
from headwater.events.avro.framing import HEADER_BYTES, MAGIC
from headwater.events.kinds import KINDS


@cache
def kinds_by_header() -> dict[bytes, str]:
    """Which kind's newest schema the first bytes of an event name."""
    return {MAGIC + current_schema(kind).fingerprint: name for name, kind in KINDS.items()}


def kind_of(data: bytes) -> str | None:
    """The kind of an event that was written with its newest schema."""
    return kinds_by_header().get(data[:HEADER_BYTES])


def record_of(data: bytes, kind: str) -> Any:
    """All fields of an event that was written with its newest schema."""
    return schemaless_reader(io.BytesIO(data[HEADER_BYTES:]), plain_schema(kind), None)


@cache
def plain_schema(kind: str) -> Any:
    """The newest schema of a kind without logical types, whose values fastavro would make objects of."""
    return parse_schema(_physical(json.loads(current_schema(KINDS[kind]).text)))


def _physical(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: _physical(value) for name, value in schema.items() if name != "logicalType"}
    return [_physical(each) for each in schema] if isinstance(schema, list) else schema
