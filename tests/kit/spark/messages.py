"""What can stand in a topic: events of several versions, kinds from the future, schemas, and bytes that are nothing."""

from __future__ import annotations

import io
import json
from typing import Any, Final
from uuid import UUID

from fastavro import schemaless_reader, schemaless_writer

from headwater.events.avro import Codec, WriterSchema, current_schema
from headwater.events.avro.framing import HEADER_BYTES, MAGIC
from headwater.events.avro.schema_cache import read_schema
from headwater.events.envelope import Event
from headwater.events.jobs import Committed
from headwater.testing.examples import EXAMPLES

COMMITTED: Final[Committed] = next(e for e in EXAMPLES if isinstance(e, Committed))
NEWEST: Final = current_schema(Committed)


def _changed(version: int, **change: Any) -> WriterSchema:
    return read_schema(json.dumps({**json.loads(NEWEST.text), "version": version, **change}))


_FIELDS: Final = json.loads(NEWEST.text)["fields"]
OLD: Final = _changed(0, fields=[f for f in _FIELDS if f["name"] not in {"batch_id", "application"}])
"""Committed before it had two of its fields, of which one has a default that isn't null."""
_NOTE: Final = {"name": "note", "type": "string", "default": "none"}
NEW: Final = _changed(NEWEST.version + 1, fields=[*_FIELDS[:12], _NOTE, *_FIELDS[12:]])
"""Committed with a field that this version of headwater doesn't know, in the middle of the others."""
REBALANCED: Final = _changed(1, name="Rebalanced", fields=[*_FIELDS[:9], {"name": "moved", "type": ["null", "Uuid"]}])
"""A kind that this version of headwater doesn't know."""
SECRET: Final = _changed(7, name="Untold")
"""A kind whose schema nobody tells."""


def framed(schema: WriterSchema, record: dict[str, Any]) -> bytes:
    """A message in single-object encoding."""
    return MAGIC + schema.fingerprint + content(schema, record)


def content(schema: WriterSchema, record: dict[str, Any]) -> bytes:
    """The Avro bytes alone."""
    buffer = io.BytesIO()
    schemaless_writer(buffer, schema.parsed, record)
    return buffer.getvalue()


def record_of(event: Event) -> dict[str, Any]:
    """The plain content of an event, as Avro has it."""
    data = Codec().encode(event)[HEADER_BYTES:]
    return dict(schemaless_reader(io.BytesIO(data), current_schema(type(event)).parsed, None))  # type: ignore[arg-type]


def varint(number: int) -> bytes:
    """A number as Avro writes it."""
    number = (number << 1) ^ (number >> 63)
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def lying(at: str, length: int, size: int = 0) -> bytes:
    """A Committed of a few bytes that says it has a text, or a list, of this length."""
    start = MAGIC + NEWEST.fingerprint + varint(1) + UUID(int=1).bytes + varint(1) + varint(1) + varint(0)
    if at == "text":
        return start + varint(length) + b"abc"
    before_inputs = start + varint(0) + b"\0\0\0" + varint(7) + b"\0\0" + bytes(16)
    return before_inputs + varint(length) + (varint(size) if length < 0 else b"") + b"\0\0"


EVENTS: Final = {f"{type(e).__name__} {n}": Codec().encode(e) for n, e in enumerate(EXAMPLES)}
_RECORD: Final = record_of(COMMITTED)
_GOOD: Final = Codec().encode(COMMITTED)
VERSIONS: Final = {
    "old": framed(OLD, _RECORD),
    "now": _GOOD,
    "new": framed(NEW, {**_RECORD, "schema_version": NEW.version, "note": "from the future"}),
}
FUTURE: Final = {
    "rebalanced": framed(REBALANCED, {**_RECORD, "moved": UUID(int=5).bytes}),
    "untold": framed(SECRET, _RECORD),
}
REFUSED: Final = _changed(1, name="Refused", fields=[*_FIELDS[:9], {"name": "x", "type": ["string", "string"]}])
"""A schema that Python's Avro takes and Java's refuses."""
BAD: Final[dict[str, tuple[bytes | None, str]]] = {
    "null": (None, "empty"),
    "empty": (b"", "empty"),
    "half a magic": (MAGIC[:1], "unknown framing"),
    "magic alone": (MAGIC, "malformed"),
    "half a fingerprint": (_GOOD[:6], "malformed"),
    "header alone": (_GOOD[:HEADER_BYTES], "malformed"),
    "cut by one": (_GOOD[:-1], "malformed"),
    "one too many": (_GOOD + b"\0", "trailing bytes"),
    "two events in one": (_GOOD + _GOOD, "trailing bytes"),
    "json": (b'{"kind": "Committed"}', "unknown framing"),
    "registry": (b"\0\0\0\0\7" + _GOOD[HEADER_BYTES:], "unknown framing"),
    "a text of 2 GB": (lying("text", 2_000_000_000), "malformed"),
    "a text of 1 TB": (lying("text", 1 << 40), "malformed"),
    "a text of -5": (lying("text", -5), "malformed"),
    "a list of 2 billion": (lying("list", 2_000_000_000), "malformed"),
    "a list of 2 billion to be skipped": (lying("list", -2_000_000_000), "malformed"),
    "a list that goes back": (lying("list", -1, -3), "malformed"),
    "a symbol that doesn't exist": (
        _GOOD.replace(b"\x02\x04\x00\x01\x00\x00\x02", b"\x02\x7e\x00\x01\x00\x00\x02", 1),
        "malformed",
    ),
    "too large": (MAGIC + NEWEST.fingerprint + bytes(1_000_000), "too large"),
    "noise": (_GOOD[:HEADER_BYTES] + b"\xff" * 200, "malformed"),
}
