"""How an event's schema is named on the topic: by its fingerprint, or by its id in a schema registry."""

from __future__ import annotations

from contextlib import suppress
from typing import Final, Protocol

from headwater.events.avro.framing import HEADER_BYTES, MAGIC
from headwater.events.avro.registry import Confluent, HttpRegistry
from headwater.events.avro.schema_cache import SchemaCache
from headwater.publishers.kafka.config import KafkaConfig
from headwater.spi import EventRecord

_NUMERIC_SETTINGS: Final = frozenset(
    {"timeout", "max.retries", "retries.wait.ms", "retries.max.wait.ms", "cache.capacity", "cache.latest.ttl.sec"}
)
"""Settings of Confluent's client that it doesn't take as text."""


class SchemaFraming(Protocol):
    """How the schema of an event is named in what is sent, for one sender."""

    def frame(self, record: EventRecord) -> bytes:
        """What is sent of the record. A HeadwaterError if that can't be known now."""
        ...


class FingerprintFraming:
    """Avro's single-object encoding, as it stands in the spool: readers have the schemas in their package."""

    def frame(self, record: EventRecord) -> bytes:
        return record.data


class RegistryFraming:
    """The same records in Confluent's framing; the registry is asked once for each schema."""

    def __init__(self, framing: Confluent) -> None:
        self._schemas = SchemaCache()
        self._framing = framing

    def frame(self, record: EventRecord) -> bytes:
        data = record.data
        schema = self._schemas.find(data[len(MAGIC) : HEADER_BYTES]) if data[: len(MAGIC)] == MAGIC else None
        if schema is None:  # readers of this framing understand the other one too
            return data
        return self._framing.header(schema) + data[HEADER_BYTES:]


def make_schema_framing(config: KafkaConfig) -> SchemaFraming:
    """A ConfigurationError where the registry's client doesn't like its settings."""
    if not config.schema_registry:
        return FingerprintFraming()
    settings: dict[str, object] = {"timeout": 3, "max.retries": 0, **config.schema_registry}
    for key in _NUMERIC_SETTINGS & settings.keys():
        with suppress(ValueError):  # what is no number the client tells itself
            settings[key] = int(str(settings[key]))
    return RegistryFraming(Confluent(HttpRegistry(settings), config.topic))
