"""The wire form of events: Avro, one record schema per kind, derived from the models."""

from headwater.events.avro.book import SchemaBook, WriterSchema, released
from headwater.events.avro.codec import MAX_EVENT_BYTES, Codec, Decoded, UnknownEvent, current_schema
from headwater.events.avro.errors import DecodeError, EncodeError, EventTooLargeError, Problem
from headwater.events.avro.framing import Framing, SchemaMessage, SingleObject, schema_message
from headwater.events.avro.registry import (
    Confluent,
    HttpRegistry,
    Registry,
    RegistryRefusedError,
    RegistryUnavailableError,
)
from headwater.events.avro.schema import schema_of

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
    "SchemaBook",
    "SchemaMessage",
    "SingleObject",
    "UnknownEvent",
    "WriterSchema",
    "current_schema",
    "released",
    "schema_message",
    "schema_of",
]
