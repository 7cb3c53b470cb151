"""A broker of the tests' own, and Spark's reads and writes of its topics."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from headwater.local import Service
from tests.kit.spark.driver import KAFKA, Driver, driver_with
from tests.kit.topics import create_topic
from tests.kit.waiting import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOW: Final = int(time.time() * 1_000) - 60_000


class Broker:
    """Topics of two partitions. Its clients know it under two names, which the driver's configuration makes one."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.otherwise = servers.replace("127.0.0.1", "localhost")
        self._admin = AdminClient({"bootstrap.servers": servers})
        # Idempotent, else a retry can turn records round.
        self._producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})

    def topic(self, name: str, *partitions: Sequence[int]) -> str:
        """A topic with records at these times in each of its partitions."""
        create_topic(self._admin, name, len(partitions), {})
        for partition, times in enumerate(partitions):
            for n, at in enumerate(times):
                self._producer.produce(name, f"{partition}-{n}".encode(), partition=partition, timestamp=NOW + at)
        assert self._producer.flush(PATIENCE) == 0
        return name

    def add(self, topic: str, partition: int, at: int) -> None:
        self._producer.produce(topic, b"more", partition=partition, timestamp=NOW + at)
        assert self._producer.flush(PATIENCE) == 0

    def remove(self, topic: str, partition: int, before: int) -> None:
        """Have the broker remove records, as retention does it."""
        for removed in self._admin.delete_records([TopicPartition(topic, partition, before)]).values():
            removed.result()

    def enlarge(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions, and wait until the producer knows them."""
        for made in self._admin.create_partitions([NewPartitions(topic, partitions)]).values():
            made.result()
        end = time.monotonic() + PATIENCE
        while len(self._producer.list_topics(topic).topics[topic].partitions) < partitions:
            assert time.monotonic() < end

    def read(self, spark: SparkSession, **options: str) -> DataFrame:
        servers = {"kafka.bootstrap.servers": self.servers}
        return spark.read.format("kafka").options(**{**servers, **options}).load()

    def write(self, frame: DataFrame, **options: str) -> None:
        frame.write.format("kafka").options(**{"kafka.bootstrap.servers": self.servers, **options}).save()


@pytest.fixture(scope="module", name="broker")
def broker_fixture(kafka: Service) -> Broker:
    """For a module: `broker = broker_fixture`."""
    return Broker(kafka.address)


@pytest.fixture(scope="module", name="driver")
def kafka_driver_fixture(java_home: Path, broker: Broker) -> Generator[Driver]:
    """For a module: `driver = kafka_driver_fixture`. The broker has two addresses and one name."""
    names = f"{broker.servers},{broker.otherwise}"
    with driver_with(java_home, KAFKA, spark__headwater__namespaces__events=names) as driver:
        yield driver
