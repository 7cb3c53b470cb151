"""OpenLineage's messages on a real broker: acknowledged, under the keys of the official client, and refused by name."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest
from openlineage.client.transport.kafka import KafkaConfig, KafkaTransport

from headwater.errors import HeadwaterError, TransientError
from headwater.events import Event
from headwater.forwarders.api import ForwarderContext, NoLineage, RefusedEventsError
from headwater.forwarders.openlineage import OpenLineageForwarder
from headwater.forwarders.openlineage.kafka import key_of
from headwater.forwarders.openlineage.mapping import openlineage_events
from headwater.local import Service
from headwater.spi import CheckStatus
from headwater.testing.examples import EXAMPLES
from tests.kit.forwarders.sending import error_of
from tests.kit.topics import new_topic, values_of

EVENTS = [event for event in EXAMPLES if event.kind in {"JobStarted", "Committed", "JobLineage", "DropTable"}]


def forwarder(servers: str, topic: str, **options: str) -> OpenLineageForwarder:
    return OpenLineageForwarder(ForwarderContext("ol", {"bootstrap.servers": servers, "topic": topic, **options}))


def sent(target: OpenLineageForwarder, events: Sequence[Event] = EVENTS) -> HeadwaterError | None:
    return error_of(target, events)


@pytest.mark.kafka
def test_messages_are_on_the_topic_and_what_is_too_large_is_named(kafka: Service) -> None:
    """The broker refuses what is too large only when it gets it, together with others."""
    topic = new_topic(kafka.address, "openlineage", settings={"max.message.bytes": "4000"})
    target = forwarder(kafka.address, topic)
    sizes = [[len(json.dumps(json.loads(text), sort_keys=True)) for text in target.preview(each)] for each in EVENTS]
    too_large = {index for index, of_event in enumerate(sizes) if max(of_event) > 4000}
    small = [event for index, event in enumerate(EVENTS) if index not in too_large]
    assert too_large
    assert small
    error = sent(target)
    assert isinstance(error, RefusedEventsError)
    assert error.reasons.keys() == too_large
    expected = [json.loads(text) for event in small for text in target.preview(event)]
    found = [json.loads(each) for each in values_of(kafka.address, topic)]
    assert all(message in found for message in expected)


@pytest.mark.kafka
def test_checking_tells_of_a_topic_that_is_missing(kafka: Service) -> None:
    async def statuses(topic: str) -> list[CheckStatus]:
        return [result.status async for result in forwarder(kafka.address, topic).check()]

    there = new_topic(kafka.address, "openlineage")
    assert asyncio.run(statuses(there)) == [CheckStatus.OK, CheckStatus.OK]


def test_a_broker_that_is_away_is_an_error() -> None:
    """The client's own transport only logs that."""
    target = forwarder("127.0.0.1:1", "t", **{"request.timeout": "500 ms"})
    assert isinstance(sent(target, EVENTS[:1]), TransientError)


def test_keys_are_those_of_the_official_client() -> None:
    client = KafkaTransport(KafkaConfig(config={}, topic="t"))
    messages = [message for event in EXAMPLES for message in openlineage_events(event, NoLineage())]
    assert [key_of(message) for message in messages] == [client._get_message_key(message) for message in messages]
    assert len({key_of(message).partition(":")[0] for message in messages}) == 3
