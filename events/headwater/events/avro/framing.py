"""What stands before an event's Avro bytes and says which schema they were written with.

Without a schema registry: Avro's single-object encoding, two bytes of magic and the schema's fingerprint. Who doesn't
have that schema in the package finds it in a schema message of the topic, itself single-object encoded.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Final, Protocol

from fastavro import parse_schema, schemaless_reader, schemaless_writer

from headwater.events.avro.book import SchemaBook, WriterSchema, fingerprint_of
from headwater.events.avro.errors import DecodeError, Problem
from headwater.events.avro.schema import NAMESPACE

MAGIC: Final = b"\xc3\x01"
HEADER_BYTES: Final = len(MAGIC) + 8
_SCHEMA_MESSAGE: Final = {
    "type": "record",
    "name": "SchemaMessage",
    "namespace": NAMESPACE,
    "fields": [{"name": "schema", "type": "string"}],
}
SCHEMA_MESSAGE_FINGERPRINT: Final = fingerprint_of(_SCHEMA_MESSAGE)
_SCHEMA_MESSAGE_SCHEMA: Final = WriterSchema("SchemaMessage", 1, SCHEMA_MESSAGE_FINGERPRINT, "")
_PARSED: Final = parse_schema(_SCHEMA_MESSAGE)


@dataclass(frozen=True)
class SchemaMessage:
    """A schema told on the bus, for readers that don't have it in their package."""

    fingerprint: bytes
    text: str


@dataclass(frozen=True)
class Framed:
    """What was found before the Avro bytes, which begin at `offset`."""

    offset: int
    fingerprint: bytes
    schema: WriterSchema | None


class Framing(Protocol):
    """How a schema is named in the bytes of an event."""

    def header(self, schema: WriterSchema) -> bytes:
        """The bytes that name the schema."""
        ...

    def open(self, data: bytes, book: SchemaBook) -> Framed:
        """Find the schema that these bytes name; a DecodeError if they name none."""
        ...


class SingleObject:
    """Avro's single-object encoding."""

    def header(self, schema: WriterSchema) -> bytes:
        return MAGIC + schema.fingerprint

    def open(self, data: bytes, book: SchemaBook) -> Framed:
        if not data:
            raise DecodeError(Problem.EMPTY, "there are none")
        if data[:2] != MAGIC:
            raise DecodeError(Problem.UNKNOWN_FRAMING, _hint(data))
        if len(data) < HEADER_BYTES:
            raise DecodeError(Problem.MALFORMED, "the schema's fingerprint is cut off", offset=len(data))
        fingerprint = bytes(data[2:HEADER_BYTES])
        schema = _SCHEMA_MESSAGE_SCHEMA if fingerprint == SCHEMA_MESSAGE_FINGERPRINT else book.find(fingerprint)
        return Framed(HEADER_BYTES, fingerprint, schema)


def _hint(data: bytes) -> str:
    if data[0] == 0:
        return "they look like a schema registry's framing: set schema.registry.url"
    if data[:1] in {b"{", b"["}:
        return "they look like JSON"
    return f"they begin with {data[:2].hex()}, where Avro's single-object encoding begins with {MAGIC.hex()}"


def schema_message(schema: WriterSchema) -> bytes:
    """The message that tells a schema to readers of a topic."""
    buffer = io.BytesIO()
    buffer.write(MAGIC + SCHEMA_MESSAGE_FINGERPRINT)
    schemaless_writer(buffer, _PARSED, {"schema": schema.text})
    return buffer.getvalue()


def schema_message_text(schema: WriterSchema, data: bytes, offset: int) -> str | None:
    """The schema that a schema message tells; None if it is another message."""
    if schema is not _SCHEMA_MESSAGE_SCHEMA:
        return None
    source = io.BytesIO(data)
    source.seek(offset)
    try:
        record = schemaless_reader(source, _PARSED, None)
    except Exception as e:
        raise DecodeError(Problem.MALFORMED, str(e), offset=source.tell(), kind="SchemaMessage") from e
    if source.tell() != len(data) or not isinstance(record, dict):
        raise DecodeError(Problem.TRAILING_BYTES, "after the schema", offset=source.tell(), kind="SchemaMessage")
    return str(record["schema"])
