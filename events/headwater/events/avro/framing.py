"""What stands before an event's Avro bytes and says which schema they were written with.

Without a schema registry it is Avro's single-object encoding: two bytes of magic and the schema's fingerprint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from headwater.events.avro.schema_cache import SchemaCache, WriterSchema
from headwater.events.errors import DecodeError, Problem

MAGIC: Final = b"\xc3\x01"
HEADER_BYTES: Final = len(MAGIC) + 8


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

    def open(self, data: bytes, schemas: SchemaCache) -> Framed:
        """Find the schema that these bytes name; a DecodeError if they name none."""
        ...


class SingleObject:
    """Avro's single-object encoding."""

    def header(self, schema: WriterSchema) -> bytes:
        return MAGIC + schema.fingerprint

    def open(self, data: bytes, schemas: SchemaCache) -> Framed:
        if not data:
            raise DecodeError(Problem.EMPTY, "there are none")
        if data[:2] != MAGIC:
            raise DecodeError(Problem.UNKNOWN_FRAMING, _hint(data))
        if len(data) < HEADER_BYTES:
            raise DecodeError(Problem.MALFORMED, "the schema's fingerprint is cut off", offset=len(data))
        fingerprint = bytes(data[2:HEADER_BYTES])
        return Framed(HEADER_BYTES, fingerprint, schemas.find(fingerprint))


def _hint(data: bytes) -> str:
    if data[0] == 0:
        return "they look like a schema registry's framing: set schema.registry.url"
    if data[:1] in {b"{", b"["}:
        return "they look like JSON"
    return f"they begin with {data[:2].hex()}, where Avro's single-object encoding begins with {MAGIC.hex()}"
