"""Events for a writer, on a topic, and what the law of merging makes of them: the digest that its store must have."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from uuid import UUID

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Producer

from headwater.events import Committed, DatasetId, Event, Format, Input, JobName, Output
from headwater.events.avro import Codec
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import RowSet
from headwater.lineage.sql import store_digest
from headwater.lineage.store import Store
from headwater.local import KafkaServer
from tests.kit.topics import messages_of
from tests.kit.waiting import PATIENCE

CODEC = Codec()
PRODUCER = UUID(int=77)


def commits(count: int) -> list[Event]:
    """Of twenty jobs, each of which makes one table from another."""
    began = datetime.now(timezone.utc)
    return [
        Committed(
            producer=PRODUCER,
            sequence=number,
            family_sequence=number,
            time=began + timedelta(milliseconds=number),
            job=JobName(name=f"job-{number % 20}"),
            run=UUID(int=number % 20),
            barrier=number,
            inputs=(Input(dataset=DatasetId(namespace="s3://lake", name=f"raw-{number % 20}"), snapshot=number),),
            outputs=(
                Output(
                    dataset=DatasetId(namespace="s3://lake", name=f"daily-{number % 20}"),
                    snapshot=number,
                    format=Format.PAIMON,
                    made_from=(0,),
                ),
            ),
        )
        for number in range(1, count + 1)
    ]


def digest_in(store: Store) -> str:
    with store.engine.connect() as connection:
        return store_digest(connection)


def digest_by_law(records: list[tuple[bytes, int | None]]) -> str:
    state = RowSet()
    for data, appended in records:
        event = CODEC.decode(data)
        assert isinstance(event, Event)
        state.merge(map_event(event, appended))
    return state.digest()


def produced(kafka: KafkaServer, topic: str, data: list[bytes], at_once: int = 10_000) -> None:
    client = Producer({**kafka.client_config(), "enable.idempotence": True})
    for number, each in enumerate(data, 1):
        client.produce(topic, each, partition=number % 3)
        if number % at_once == 0:
            assert client.flush(PATIENCE) == 0
    assert client.flush(PATIENCE) == 0


def on_topic(kafka: KafkaServer, topic: str) -> list[tuple[bytes, int | None]]:
    """All of it, with the broker's times."""
    return [
        (each.value() or b"", millis * 1_000 if kind == TIMESTAMP_LOG_APPEND_TIME else None)
        for each in messages_of(kafka, topic)
        for kind, millis in [each.timestamp()]
    ]
