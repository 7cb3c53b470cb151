"""The contract suite on Kafka: a real broker, killed where it has to refuse, and stopped where it mustn't answer."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest
from confluent_kafka import Message

from headwater.local import KafkaServer
from headwater.publishers.kafka import KafkaFactory, KafkaListener
from headwater.testing.memory import MemoryContext
from headwater.testing.publishers import PublishedRecord, PublisherContract
from tests.kit.topics import messages_of

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.sample(4)]


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaServer]:
    """One that may be killed and stopped."""
    with KafkaServer() as server:
        yield server


def passed_on(message: Message) -> PublishedRecord:
    key, value, headers = message.key(), message.value(), dict(message.headers() or [])
    assert isinstance(key, bytes)
    assert isinstance(value, bytes)
    return PublishedRecord(key, {name: each for name, each in headers.items() if isinstance(each, bytes)}, value)


class TestKafkaListener(PublisherContract):
    configuration: ClassVar[dict[str, str]] = {}

    @pytest.fixture(autouse=True)
    def _topic(self, broker: KafkaServer) -> Iterator[None]:
        self.broker = broker
        self.topic = f"contract-{uuid.uuid4()}"
        with ThreadPoolExecutor(1) as self.executor:
            yield

    def create(self) -> KafkaListener:
        keys = {"bootstrap.servers": self.broker.address, "topic": self.topic, **self.configuration}
        return KafkaFactory().create(MemoryContext("kafka", keys, self.executor))

    def passed_on(self, listener: Any) -> list[PublishedRecord]:
        return [passed_on(each) for each in messages_of(self.broker, self.topic)]

    @contextmanager
    def refusing(self) -> Generator[None]:
        self.broker.kill()
        try:
            yield
        finally:
            self.broker.restart()

    @contextmanager
    def stalling(self) -> Generator[None]:
        assert self.broker.pid is not None
        os.kill(self.broker.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.broker.pid, signal.SIGCONT)
