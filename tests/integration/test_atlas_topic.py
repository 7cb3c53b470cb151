"""Atlas's topic on a real broker: what is sent comes out whole and in order, and what can't be sent is told apart."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from headwater.errors import ConfigurationError, TransientError
from headwater.forwarders.api import ForwarderContext, RefusedEventsError
from headwater.forwarders.atlas import AtlasForwarder
from headwater.forwarders.atlas.mapping import atlas_changes
from headwater.forwarders.atlas.messages import notifications
from headwater.forwarders.atlas.options import AtlasNames
from headwater.local import Service
from headwater.spi import CheckStatus
from tests.kit.atlas.envelopes import opened
from tests.kit.atlas.story import STORY, send
from tests.kit.topics import messages_of, new_topic

pytestmark = pytest.mark.slow

PARTITIONS = 3


def forwarder(servers: str, topic: str, **options: str) -> AtlasForwarder:
    told = {"bootstrap.servers": servers, "topic": topic, "register.types": "false"}
    return AtlasForwarder(
        ForwarderContext("atlas", told | {key.replace("_", "."): text for key, text in options.items()})
    )


def messages_on(servers: str, topic: str) -> dict[int, list[bytes]]:
    """The messages in each partition that has some."""
    found: dict[int, list[bytes]] = {}
    for each in messages_of(servers, topic):
        found.setdefault(each.partition() or 0, []).append(each.value() or b"")
    return found


def expected() -> list[Any]:
    return [each for event in STORY for each in notifications(atlas_changes(event, AtlasNames()))]


@pytest.mark.kafka
@pytest.mark.parametrize(("size", "compression"), [("600", "true"), ("1500", "false")])
def test_a_story_comes_out_in_order_from_one_partition(kafka: Service, size: str, compression: str) -> None:
    topic = new_topic(kafka.address, "hook", PARTITIONS, settings={"max.message.bytes": "1700"})
    assert send(forwarder(kafka.address, topic, message_bytes=size, compression=compression), STORY) is None
    (messages,) = messages_on(kafka.address, topic).values()
    assert opened(messages) == expected()
    assert len(messages) > len(expected()), "some are split"


@pytest.mark.kafka
def test_what_a_broker_finds_too_large_is_named(kafka: Service) -> None:
    topic = new_topic(kafka.address, "hook", PARTITIONS, settings={"max.message.bytes": "1200"})
    error = send(forwarder(kafka.address, topic, message_bytes="4000", compression="false"), STORY)
    assert isinstance(error, RefusedEventsError)
    sizes = [sum(len(str(each)) for each in notifications(atlas_changes(event, AtlasNames()))) for event in STORY]
    assert set(error.reasons) < set(range(len(STORY)))
    assert max(range(len(STORY)), key=sizes.__getitem__) in error.reasons


@pytest.mark.kafka
def test_checking_tells_of_a_topic_that_is_missing(kafka: Service) -> None:
    async def statuses(topic: str) -> list[CheckStatus]:
        to = forwarder(kafka.address, topic)
        found = [result.status async for result in to.check()]
        await to.close()
        return found

    assert asyncio.run(statuses(new_topic(kafka.address, "hook", PARTITIONS))) == [CheckStatus.OK, CheckStatus.OK]
    missing = f"nowhere-{uuid.uuid4()}"
    for _ in range(2):  # to look for it doesn't create it
        assert asyncio.run(statuses(missing)) == [CheckStatus.OK, CheckStatus.ERROR]


def test_a_broker_that_is_away_is_waited_for() -> None:
    assert isinstance(send(forwarder("127.0.0.1:1", "t", request_timeout="500 ms"), STORY[:1]), TransientError)


def test_faulty_settings_of_librdkafka_are_the_configurations_fault() -> None:
    with pytest.raises(ConfigurationError, match="nonsense"):
        forwarder("127.0.0.1:1", "t", **{"producer.nonsense": "1"})
