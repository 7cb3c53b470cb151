"""A Spark session with Kafka's source, topics with events, and databases, for tests of the pipeline on Spark."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from headwater.consumers.sources.kafka import KafkaSource
from headwater.consumers.spark.pipeline import PipelineOptions
from headwater.consumers.spark.pipeline.kafka_topic import kafka_package
from headwater.consumers.writer.runner import Runner
from headwater.consumers.writer.store_pipeline import StorePipeline
from headwater.lineage.sql import store_digest
from headwater.lineage.store import Store, StoreOptions, open_store
from headwater.local import KafkaServer
from tests.kit.events.written import digest_by_law, on_topic
from tests.kit.spark.session import spark_session
from tests.kit.stores import database_on
from tests.kit.waiting import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUP = "g"


@contextmanager
def kafka_session(java_home: Path, **conf: str) -> Generator[SparkSession, None, None]:
    import pyspark

    package = kafka_package(str(pyspark.__version__))
    with spark_session(java_home, **{"spark.jars.packages": package, "spark.ui.showConsoleProgress": "false"}) as spark:
        for key, value in conf.items():
            spark.conf.set(key, value)
        yield spark


def produce(kafka: KafkaServer, topic: str, data: Sequence[bytes], partitions: int = 3, seed: int = 7) -> None:
    """Each into a partition by chance."""
    client = Producer({**kafka.client_config(), "enable.idempotence": True, "linger.ms": 20})
    chance = random.Random(seed)
    for each in data:
        client.produce(topic, each, b"key", partition=chance.randrange(partitions), headers=[("kind", b"?")])
    assert client.flush(PATIENCE) == 0


@contextmanager
def new_store(request: pytest.FixtureRequest, place: Path, name: str = "postgres") -> Generator[Store]:
    with (
        database_on(name, request, place) as url,
        open_store(url.render_as_string(hide_password=False)) as store,
    ):
        yield store


def url_of(store: Store) -> str:
    password = store.target.password
    url = store.target.url if password is None else store.target.url.set(password=password())
    return url.render_as_string(hide_password=False)


def options_for(store: Store, kafka: KafkaServer, topic: str, **more: Any) -> PipelineOptions:
    settings = {"topic": topic, "kafka": {"bootstrap.servers": kafka.address}, "group": GROUP, **more}
    return PipelineOptions(StoreOptions.at(url_of(store)), **settings)


def digest_in(store: Store) -> str:
    with store.engine.connect() as connection:
        return store_digest(connection)


def written_by_writer(kafka: KafkaServer, topic: str, store: Store, group: str = GROUP) -> int:
    """What the writer reads, up to where the topic ends now."""
    settings = {name: str(value) for name, value in kafka.client_config().items()}
    source = KafkaSource(settings, topic, group, lambda cluster: store.bulk.offsets(group, cluster))
    runner = Runner(source, StorePipeline({"": store.bulk}, group, "kafka", topic), until_end=True)
    try:
        asyncio.run(asyncio.wait_for(runner.run(), 60))
    finally:
        source.close()
    return runner.metrics.events


def assert_by_law(store: Store, kafka: KafkaServer, topic: str) -> None:
    """By the records as a consumer sees them."""
    assert digest_in(store) == digest_by_law(on_topic(kafka, topic))
