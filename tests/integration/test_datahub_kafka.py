"""Proposals on a real broker, by the SDK's own emitter: read back by DataHub's schema, under their entity's key."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from datahub.metadata.schema_classes import MetadataChangeProposalClass
from datahub.metadata.schemas import getMetadataChangeProposalSchema

from headwater.errors import ConfigurationError, HeadwaterError, TerminalError, TransientError
from headwater.events import Event
from headwater.forwarders.api import ForwarderContext, RefusedEventsError
from headwater.forwarders.datahub import DataHubForwarder
from headwater.forwarders.datahub.mapping import datahub_proposals
from headwater.forwarders.datahub.options import DataHubNames
from headwater.local import Service
from headwater.spi import CheckStatus
from tests.kit.forwarders.datahub_cases import CASES
from tests.kit.forwarders.sending import error_of
from tests.kit.registry_server import SchemaRegistry, schema_registry
from tests.kit.topics import messages_of, new_topic

pytestmark = pytest.mark.slow

EVENTS = [CASES[name] for name in ("table_created", "lineage", "commit", "table_dropped")]


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with schema_registry() as server:
        yield server


def forwarder(servers: str, registry: str, topic: str, **options: str) -> DataHubForwarder:
    told = {"bootstrap.servers": servers, "schema.registry.url": registry, "topic": topic, **options}
    return DataHubForwarder(ForwarderContext("datahub", told))


def sent(target: DataHubForwarder, events: list[Event] = EVENTS) -> HeadwaterError | None:
    return error_of(target, events)


def proposals_on(servers: str, registry: str, topic: str) -> list[tuple[str, Any]]:
    """What a reader of DataHub's gets: keys, and proposals by its schema."""
    client = SchemaRegistryClient({"url": registry})
    read: Any = AvroDeserializer(client, getMetadataChangeProposalSchema())
    value = SerializationContext(topic, MessageField.VALUE)
    return [
        ((each.key() or b"").decode(), MetadataChangeProposalClass.from_obj(read(each.value(), value), tuples=True))
        for each in messages_of(servers, topic)
    ]


@pytest.mark.kafka
def test_proposals_are_on_the_topic_in_order_under_their_entity(kafka: Service, registry: SchemaRegistry) -> None:
    topic = new_topic(kafka.address, "proposals")
    assert sent(forwarder(kafka.address, registry.url, topic)) is None
    expected = [each for event in EVENTS for each in datahub_proposals(event, DataHubNames())]
    found = proposals_on(kafka.address, registry.url, topic)
    assert [key for key, _ in found] == [each.entityUrn for each in expected]
    assert [each.to_obj() for _, each in found] == [each.to_obj() for each in expected]
    assert {each.headers and each.headers.get("If-None-Match") for _, each in found} == {None, "*"}


@pytest.mark.kafka
def test_an_event_that_is_too_large_is_named_and_the_others_are_sent(kafka: Service, registry: SchemaRegistry) -> None:
    """The broker refuses what is too large only when it gets it, together with others."""
    topic = new_topic(kafka.address, "proposals", settings={"max.message.bytes": "1500"})
    error = sent(forwarder(kafka.address, registry.url, topic, **{"producer.linger.ms": "0"}))
    assert isinstance(error, RefusedEventsError)
    assert error.reasons.keys() == {0, 1}, "a schema and a patch are larger"
    small = [each for event in EVENTS[2:] for each in datahub_proposals(event, DataHubNames())]
    found = {(key, str(each.aspectName)) for key, each in proposals_on(kafka.address, registry.url, topic)}
    assert {(each.entityUrn, each.aspectName) for each in small} <= found


@pytest.mark.kafka
def test_a_registry_that_fails_is_told_from_one_that_refuses(kafka: Service, registry: SchemaRegistry) -> None:
    topic = new_topic(kafka.address, "proposals")
    away = forwarder(kafka.address, "http://127.0.0.1:1", topic, **{"schema.registry.max.retries": "0"})
    assert isinstance(sent(away), TransientError)
    lost = forwarder(kafka.address, f"{registry.url}/nowhere", topic)
    assert isinstance(sent(lost), TerminalError)


@pytest.mark.kafka
def test_checking_tells_of_a_topic_that_is_missing(kafka: Service, registry: SchemaRegistry) -> None:
    async def statuses(topic: str) -> list[CheckStatus]:
        target = forwarder(kafka.address, registry.url, topic)
        found = [result.status async for result in target.check()]
        await target.close()
        return found

    assert asyncio.run(statuses(new_topic(kafka.address, "proposals"))) == [CheckStatus.OK, CheckStatus.OK]
    assert asyncio.run(statuses("nowhere")) == [CheckStatus.ERROR]


def test_a_broker_that_is_away_is_an_error(registry: SchemaRegistry) -> None:
    target = forwarder("127.0.0.1:1", registry.url, "t", **{"request.timeout": "500 ms"})
    assert isinstance(sent(target, EVENTS[-1:]), TransientError)


def test_faulty_settings_of_librdkafka_are_the_configurations_fault(registry: SchemaRegistry) -> None:
    with pytest.raises(ConfigurationError, match="nonsense"):
        forwarder("127.0.0.1:1", registry.url, "t", **{"producer.nonsense": "1"})
