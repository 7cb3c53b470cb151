"""Dead letters whose topic a writer has no rights to: it goes on, says which right is missing, and sends them later."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AclOperation

from headwater.consumers.sources.dead_letter_topic import DeadLetterTopic
from headwater.consumers.sources.kafka import KafkaSource
from headwater.consumers.writer import dead_letter_mirror
from headwater.consumers.writer.dead_letter_mirror import DeadLetterMirror
from headwater.consumers.writer.plain_pipeline import PlainPipeline
from headwater.consumers.writer.runner import Runner
from headwater.lineage.store import Store, open_store
from tests.kit.kafka.secured import SecuredStage, scram_client, secured_stage
from tests.kit.kafka.stage import new_topic
from tests.kit.waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.long]

PASSWORD: Final = "s3cr3t-of-a-writer"
PATIENCE: Final = 60.0
CREATE, DESCRIBE, READ, WRITE = AclOperation.CREATE, AclOperation.DESCRIBE, AclOperation.READ, AclOperation.WRITE
WAITS: Final = "dead letters wait in the store's table"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredStage]:
    with secured_stage(tmp_path_factory.mktemp("certificates")) as shared:
        yield shared


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letter_mirror, "_LOOK_SECONDS", 0.1)
    monkeypatch.setattr(dead_letter_mirror, "_LONGEST_WAIT", 0.2)


class Writing:
    """A writer, and what came of it."""

    def __init__(self, secured: SecuredStage, store: Store, runner: Runner, topic: str, user: str) -> None:
        self.secured, self.store, self.runner, self.topic, self.user = secured, store, runner, topic, user
        self.letters = f"{topic}.dead-letters"

    def spoil(self, count: int) -> None:
        """One more, until there are so many letters in the table."""
        producer = Producer(self.secured.kafka.config())
        producer.produce(self.topic, b"no event")
        assert producer.flush(PATIENCE) == 0
        until(lambda: len(list(self.store.bulk.dead_letters())) == count)

    def is_tried(self, times: int) -> None:
        before = self.runner.metrics.mirror_errors
        until(lambda: self.runner.metrics.mirror_errors >= before + times)

    def sent(self) -> int:
        with closing(Consumer({**self.secured.kafka.config(), "group.id": "looks"})) as client:
            return int(client.get_watermark_offsets(TopicPartition(self.letters, 0), timeout=PATIENCE)[1])


@contextmanager
def writing(secured: SecuredStage, place: Path) -> Generator[Writing]:
    """Its user may read the topic, and nothing else."""
    topic, user = new_topic(), secured.new_user(PASSWORD)
    secured.kafka.create(topic, partitions=1, message_timestamp_type="LogAppendTime")
    secured.allow(user, topic, READ, DESCRIBE)
    secured.allow_group(user, "g")
    settings = {**scram_client(secured.authority, user, PASSWORD), "bootstrap.servers": secured.kafka.address}
    with (
        open_store(f"sqlite:///{place}/store.db") as store,
        closing(KafkaSource(settings, topic, "g", partial(store.bulk.offsets, "g"))) as source,
    ):
        runner = Runner(source, PlainPipeline(store.bulk, "g", "kafka", topic))
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_until_complete, args=(runner.run(),))
        thread.start()
        one = Writing(secured, store, runner, topic, user)
        try:
            with DeadLetterMirror(store.bulk, topic, partial(DeadLetterTopic, settings, one.letters), runner.metrics):
                yield one
        finally:
            loop.call_soon_threadsafe(runner.stop)
            thread.join(PATIENCE)
            loop.close()


def waits(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if WAITS in each.getMessage()]


def test_who_may_not_make_the_topic_says_so_once_and_goes_on(
    secured: SecuredStage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with writing(secured, tmp_path) as one:
        one.spoil(1)
        one.is_tried(3)
        one.spoil(2)
        one.is_tried(3)
        (found,) = waits(caplog)
        assert f"kafka-topics.sh --create --topic {one.letters}" in found
        assert f"--allow-principal User:{one.user} --topic {one.letters} --operation Write" in found
        secured.allow(one.user, one.letters, CREATE, WRITE)
        until(lambda: one.runner.metrics.mirrored == 2)
        assert one.sent() >= 2
    assert PASSWORD not in caplog.text


def test_who_may_not_write_says_so_once_and_goes_on(
    secured: SecuredStage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker says it in one way, and the client, once it knows, in another."""
    with writing(secured, tmp_path) as one:
        secured.kafka.create(one.letters, partitions=1)
        secured.allow(one.user, one.letters, DESCRIBE)
        one.spoil(1)
        until(lambda: any("may not write to it" in each for each in waits(caplog)))
        one.is_tried(3)
        said = len(waits(caplog))
        assert said <= 2, "each way once"
        one.spoil(2)
        one.is_tried(3)
        assert len(waits(caplog)) == said
        assert f"User:{one.user} --topic {one.letters} --operation Write" in waits(caplog)[-1]
        secured.allow(one.user, one.letters, WRITE)
        until(lambda: one.runner.metrics.mirrored == 2)
        assert one.sent() >= 2
