"""Forwarders that send to a topic of a real broker: what they send comes out whole and in order, under the right keys,
and what can't be sent is told apart.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from datahub.metadata.schema_classes import MetadataChangeProposalClass
from datahub.metadata.schemas import getMetadataChangeProposalSchema
from openlineage.client.transport.kafka import KafkaConfig, KafkaTransport

from headwater.errors import ConfigurationError, TerminalError, TransientError
from headwater.forwarders.api import ForwarderContext, NoLineage, RefusedEventsError
from headwater.forwarders.atlas import AtlasForwarder
from headwater.forwarders.atlas.forwarder import atlas_changes
from headwater.forwarders.atlas.messages import notifications
from headwater.forwarders.atlas.options import AtlasNames
from headwater.forwarders.datahub import DataHubForwarder
from headwater.forwarders.datahub.forwarder import datahub_proposals
from headwater.forwarders.datahub.options import DataHubNames
from headwater.forwarders.openlineage import OpenLineageForwarder
from headwater.forwarders.openlineage.kafka import key_of
from headwater.forwarders.openlineage.mapping import openlineage_events
from headwater.local import Service
from headwater.spi import CheckStatus
from headwater.testing.examples import EXAMPLES
from tests.kit.atlas.envelopes import opened
from tests.kit.atlas.story import STORY
from tests.kit.forwarders.datahub_cases import CASES
from tests.kit.forwarders.sending import SendingForwarder, error_of
from tests.kit.registry_server import SchemaRegistry, schema_registry
from tests.kit.topics import messages_of, new_topic, values_of

pytestmark = pytest.mark.slow

ATLAS_PARTITIONS = 3
PROPOSED = [CASES[name] for name in ("table_created", "lineage", "commit", "table_dropped")]
RUN = [event for event in EXAMPLES if event.kind in {"JobStarted", "Committed", "JobLineage", "DropTable"}]


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with schema_registry() as server:
        yield server


def atlas(servers: str, topic: str, **options: str) -> AtlasForwarder:
    told = {"bootstrap.servers": servers, "topic": topic, "register.types": "false"}
    return AtlasForwarder(ForwarderContext("atlas", told | with_dots(options)))


def datahub(servers: str, topic: str, registry: str = "http://127.0.0.1:1", **options: str) -> DataHubForwarder:
    told = {"bootstrap.servers": servers, "schema.registry.url": registry, "topic": topic}
    return DataHubForwarder(ForwarderContext("datahub", told | with_dots(options)))


def openlineage(servers: str, topic: str, **options: str) -> OpenLineageForwarder:
    told = {"bootstrap.servers": servers, "topic": topic}
    return OpenLineageForwarder(ForwarderContext("openlineage", told | with_dots(options)))


def with_dots(options: dict[str, str]) -> dict[str, str]:
    return {key.replace("_", "."): text for key, text in options.items()}


def expected_by_atlas() -> list[Any]:
    return [each for event in STORY for each in notifications(atlas_changes(event, AtlasNames()))]


@pytest.mark.kafka
@pytest.mark.parametrize(("size", "compression"), [("600", "true"), ("1500", "false")])
def test_a_story_for_atlas_comes_out_in_order_from_one_partition(kafka: Service, size: str, compression: str) -> None:
    topic = new_topic(kafka.address, "hook", ATLAS_PARTITIONS, settings={"max.message.bytes": "1700"})
    assert error_of(atlas(kafka.address, topic, message_bytes=size, compression=compression), STORY) is None
    messages = messages_of(kafka.address, topic)
    assert len({each.partition() for each in messages}) == 1
    assert opened([each.value() or b"" for each in messages]) == expected_by_atlas()
    assert len(messages) > len(expected_by_atlas()), "some are split"


@pytest.mark.kafka
def test_what_a_broker_finds_too_large_for_atlas_is_named(kafka: Service) -> None:
    topic = new_topic(kafka.address, "hook", ATLAS_PARTITIONS, settings={"max.message.bytes": "1200"})
    error = error_of(atlas(kafka.address, topic, message_bytes="4000", compression="false"), STORY)
    assert isinstance(error, RefusedEventsError)
    sizes = [sum(len(str(each)) for each in notifications(atlas_changes(event, AtlasNames()))) for event in STORY]
    assert set(error.reasons) < set(range(len(STORY)))
    assert max(range(len(STORY)), key=sizes.__getitem__) in error.reasons


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
    assert error_of(datahub(kafka.address, topic, registry.url), PROPOSED) is None
    expected = [each for event in PROPOSED for each in datahub_proposals(event, DataHubNames())]
    found = proposals_on(kafka.address, registry.url, topic)
    assert [key for key, _ in found] == [each.entityUrn for each in expected]
    assert [each.to_obj() for _, each in found] == [each.to_obj() for each in expected]
    assert {each.headers and each.headers.get("If-None-Match") for _, each in found} == {None, "*"}


@pytest.mark.kafka
def test_a_proposal_that_is_too_large_is_named_and_the_others_are_sent(
    kafka: Service, registry: SchemaRegistry
) -> None:
    """The broker refuses what is too large only when it gets it, together with others."""
    topic = new_topic(kafka.address, "proposals", settings={"max.message.bytes": "1500"})
    error = error_of(datahub(kafka.address, topic, registry.url, producer_linger_ms="0"), PROPOSED)
    assert isinstance(error, RefusedEventsError)
    assert error.reasons.keys() == {0, 1}, "a schema and a patch are larger"
    small = [each for event in PROPOSED[2:] for each in datahub_proposals(event, DataHubNames())]
    found = {(key, str(each.aspectName)) for key, each in proposals_on(kafka.address, registry.url, topic)}
    assert {(each.entityUrn, each.aspectName) for each in small} <= found


@pytest.mark.kafka
def test_a_registry_that_fails_is_told_from_one_that_refuses(kafka: Service, registry: SchemaRegistry) -> None:
    topic = new_topic(kafka.address, "proposals")
    away = datahub(kafka.address, topic, schema_registry_max_retries="0")
    assert isinstance(error_of(away, PROPOSED), TransientError)
    lost = datahub(kafka.address, topic, f"{registry.url}/nowhere")
    assert isinstance(error_of(lost, PROPOSED), TerminalError)


@pytest.mark.kafka
def test_messages_of_openlineage_are_on_the_topic_and_what_is_too_large_is_named(kafka: Service) -> None:
    topic = new_topic(kafka.address, "openlineage", settings={"max.message.bytes": "4000"})
    target = openlineage(kafka.address, topic)
    sizes = [[len(json.dumps(json.loads(text), sort_keys=True)) for text in target.preview(each)] for each in RUN]
    too_large = {index for index, of_event in enumerate(sizes) if max(of_event) > 4000}
    small = [event for index, event in enumerate(RUN) if index not in too_large]
    assert too_large
    assert small
    error = error_of(target, RUN)
    assert isinstance(error, RefusedEventsError)
    assert error.reasons.keys() == too_large
    expected = [json.loads(text) for event in small for text in target.preview(event)]
    found = [json.loads(each) for each in values_of(kafka.address, topic)]
    assert all(message in found for message in expected)


def test_keys_are_those_of_openlineages_own_client() -> None:
    client = KafkaTransport(KafkaConfig(config={}, topic="t"))
    messages = [message for event in EXAMPLES for message in openlineage_events(event, NoLineage())]
    assert [key_of(message) for message in messages] == [client._get_message_key(message) for message in messages]
    assert len({key_of(message).partition(":")[0] for message in messages}) == 3


Making: TypeAlias = Callable[..., Any]
OF_EACH = pytest.mark.parametrize("make", [atlas, datahub, openlineage])


@pytest.mark.kafka
@OF_EACH
def test_checking_tells_of_a_topic_that_is_missing(kafka: Service, registry: SchemaRegistry, make: Making) -> None:
    more = {"registry": registry.url} if make is datahub else {}

    async def statuses(topic: str) -> list[CheckStatus]:
        target = make(kafka.address, topic, **more)
        found = [result.status async for result in target.check()]
        await target.close()
        return found

    there = new_topic(kafka.address, "there", ATLAS_PARTITIONS)
    assert asyncio.run(statuses(there)) == [CheckStatus.OK, CheckStatus.OK]
    missing = f"nowhere-{uuid.uuid4()}"
    for _ in range(2):  # to look for it doesn't create it
        assert asyncio.run(statuses(missing))[-1] is CheckStatus.ERROR


@OF_EACH
def test_a_broker_that_is_away_is_waited_for(registry: SchemaRegistry, make: Making) -> None:
    """OpenLineage's own transport only logs that."""
    more = {"registry": registry.url} if make is datahub else {}
    target: SendingForwarder = make("127.0.0.1:1", "t", request_timeout="500 ms", **more)
    assert isinstance(error_of(target, RUN[:1]), TransientError)


@OF_EACH
def test_faulty_settings_of_librdkafka_are_the_configurations_fault(make: Making) -> None:
    with pytest.raises(ConfigurationError, match="nonsense"):
        make("127.0.0.1:1", "t", producer_nonsense="1")
