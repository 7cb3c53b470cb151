"""Whoever is closed lets go of its clients of Kafka at once.

A client connects again and again for as long as it lives. One that waits in a cycle for the garbage collector does so
for minutes, to a broker that was stopped, and what librdkafka says about that comes into whatever runs then. No other
test notices: all that was to be read or sent is there.
"""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from headwater.consumers.replay.kafka_range import KafkaRange
from headwater.consumers.sources.kafka import KafkaSource
from headwater.errors import HeadwaterError, TransientError
from headwater.forwarders.topic_producer import TopicProducer
from headwater.publishers.kafka import KafkaConfig
from headwater.publishers.kafka.cluster import KafkaCluster
from headwater.publishers.kafka.errors import ErrorTracker

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}
"""A port where nobody listens."""
THREAD = re.compile(r"rdk:")
"""librdkafka calls each of its threads so."""


def client_threads() -> set[str]:
    """The threads of all clients of this process, by number."""
    found = set[str]()
    for each in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # it has just ended
            if THREAD.match((each / "comm").read_text()):
                found.add(each.name)
    return found


@pytest.fixture(autouse=True)
def _nothing_is_collected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def source() -> KafkaSource:
    opened = KafkaSource(NOWHERE, "topic", "group", lambda _: {})
    opened.close()
    return opened


def replay() -> KafkaRange:
    opened = KafkaRange("kafka://127.0.0.1:1/topic", NOWHERE, "topic", dict)
    opened.close()
    return opened


def forwarded() -> TopicProducer:
    opened = TopicProducer("127.0.0.1:1", "topic", {"log_level": "0"}, 0.001)
    opened.send("key", b"value")
    with pytest.raises(HeadwaterError):
        opened.finish()
    opened.close()
    return opened


def cluster() -> KafkaCluster:
    errors = ErrorTracker(lambda _cause, _words: None, str)
    opened = KafkaCluster(KafkaConfig(bootstrap_servers="127.0.0.1:1"), errors)
    with pytest.raises(TransientError):
        opened.id(time.monotonic())
    opened.close()
    return opened


@pytest.mark.parametrize("use", [source, replay, forwarded, cluster])
def test_no_client_of_what_is_closed_lives_on(use: Callable[[], object]) -> None:
    before = client_threads()
    closed = use()
    assert client_threads() <= before, f"a client of {closed}"


def test_a_client_is_seen_for_as_long_as_it_lives() -> None:
    before = client_threads()
    opened = TopicProducer("127.0.0.1:1", "topic", {"log_level": "0"}, 0.001)
    assert client_threads() - before
    opened.close()
