"""How readers of the topic get at the schemas: from messages of the topic itself, or from a schema registry."""

from __future__ import annotations

from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from headwater.events.avro.book import SchemaBook
from headwater.events.avro.framing import HEADER_BYTES, MAGIC, schema_message
from headwater.events.avro.registry import Confluent, HttpRegistry
from headwater.events.keys import KIND, SCHEMA, Headers
from headwater.publishers.kafka.config import KafkaConfig
from headwater.spi import Record

SCHEMA_MESSAGE: Final = "SchemaMessage"
"""What stands in the header `kind` of a message that is no event and tells a schema."""


_NUMBERS: Final = frozenset(
    {"timeout", "max.retries", "retries.wait.ms", "retries.max.wait.ms", "cache.capacity", "cache.latest.ttl.sec"}
)
"""Settings of Confluent's client that it doesn't take as text."""


class Told(NamedTuple):
    """A schema, as a message for the topic."""

    data: bytes
    headers: Headers


class Schemas(Protocol):
    """For one sender."""

    def before(self, record: Record, partition: int) -> Told | None:
        """What has to be in that partition before this record."""
        ...

    def framed(self, record: Record) -> bytes:
        """What is sent of the record. A HeadwaterError if that can't be known now."""
        ...


class InTopic:
    """Each schema is told in each partition before the first event that is written with it."""

    def __init__(self) -> None:
        self._book = SchemaBook()
        self._told: set[tuple[int, bytes]] = set()

    def before(self, record: Record, partition: int) -> Told | None:
        fingerprint = record.data[len(MAGIC) : HEADER_BYTES]
        if (partition, fingerprint) in self._told:
            return None
        self._told.add((partition, fingerprint))
        schema = self._book.find(fingerprint)
        if schema is None:  # a later version's, which its own driver has told
            return None
        headers = ((KIND, SCHEMA_MESSAGE.encode()), (SCHEMA, fingerprint.hex().encode()))
        return Told(schema_message(schema), headers)

    def framed(self, record: Record) -> bytes:
        return record.data


class InRegistry:
    """The same records in Confluent's framing; the registry is asked once for each schema."""

    def __init__(self, framing: Confluent) -> None:
        self._book = SchemaBook()
        self._framing = framing

    def before(self, record: Record, partition: int) -> Told | None:  # noqa: ARG002 - nothing has to
        return None

    def framed(self, record: Record) -> bytes:
        data = record.data
        schema = self._book.find(data[len(MAGIC) : HEADER_BYTES]) if data[: len(MAGIC)] == MAGIC else None
        if schema is None:  # readers of this framing understand the other one too
            return data
        return self._framing.header(schema) + data[HEADER_BYTES:]


def schemas_for(config: KafkaConfig) -> Schemas:
    """A ConfigurationError where the registry's client doesn't like its settings."""
    if not config.schema_registry:
        return InTopic()
    settings: dict[str, object] = {"timeout": 3, "max.retries": 0, **config.schema_registry}
    for key in _NUMBERS & settings.keys():
        with suppress(ValueError):  # what is no number the client tells itself
            settings[key] = int(str(settings[key]))
    return InRegistry(Confluent(HttpRegistry(settings), config.topic))
