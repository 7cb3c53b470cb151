"""The wire form of events: Avro, one record schema per kind, derived from the models."""

from headwater.events.avro.codec import MAX_EVENT_BYTES, Codec, Decoded, current_schema
from headwater.events.avro.framing import Framing, SingleObject
from headwater.events.avro.registry import (
    Confluent,
    HttpRegistry,
    Registry,
    RegistryRefusedError,
    RegistryUnavailableError,
)
from headwater.events.avro.schema import schema_of
from headwater.events.avro.schema_cache import SchemaCache, WriterSchema, read_schema, released
from headwater.events.envelope import UnknownEvent
from headwater.events.errors import DecodeError, EncodeError, EventTooLargeError, Problem

__all__ = [
    "MAX_EVENT_BYTES",
    "Codec",
    "Confluent",
    "DecodeError",
    "Decoded",
    "EncodeError",
    "EventTooLargeError",
    "Framing",
    "HttpRegistry",
    "Problem",
    "Registry",
    "RegistryRefusedError",
    "RegistryUnavailableError",
    "SchemaCache",
    "SingleObject",
    "UnknownEvent",
    "WriterSchema",
    "current_schema",
    "read_schema",
    "released",
    "schema_of",
]
