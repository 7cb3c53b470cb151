"""From a bus into a store: the rows are those that the law makes of what stands on the bus, whatever is killed."""

from __future__ import annotations

import asyncio
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from headwater.consumers.sources import EventSource
from headwater.consumers.sources.kafka import KafkaSource
from headwater.consumers.sources.local_log import LocalLogSource
from headwater.consumers.writer.metrics import WriterMetrics
from headwater.consumers.writer.runner import Runner
from headwater.consumers.writer.store_pipeline import StorePipeline
from headwater.errors import ConfigurationError
from headwater.journal import LocalLog
from headwater.lineage.bulk import DeadLetterReason, DeadLetterState
from headwater.lineage.store import Store, open_store
from headwater.local import KafkaServer
from headwater.testing.examples import EXAMPLES
from tests.kit.events.written import CODEC, commits, digest_by_law, digest_in, on_topic, produced
from tests.kit.stores import database_on
from tests.kit.topics import ends_of, new_topic
from tests.kit.waiting import PATIENCE
from tests.kit.writers.process import wait_for_rows, writer_process

pytestmark = [pytest.mark.slow, pytest.mark.sample(3)]


def written(source: EventSource, store: Store, group: str = "g", **more: int) -> WriterMetrics:
    """Up to where the bus ends now."""
    runner = Runner(source, StorePipeline({"": store.bulk}, group, source.kind, source.topic), until_end=True, **more)
    try:
        asyncio.run(asyncio.wait_for(runner.run(), PATIENCE))
    finally:
        source.close()
    return runner.metrics


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/store.db") as opened:
        yield opened


class TestLog:
    def test_what_is_in_a_log_is_in_the_store(self, tmp_path: Path, store: Store) -> None:
        reported = [*EXAMPLES, *commits(500)]
        records = self.appended(tmp_path, [CODEC.encode(event) for event in reported])
        figures = written(LocalLogSource(tmp_path / "log", "g"), store, most=64)
        assert figures.events == len(reported)
        assert figures.batches > 5
        assert digest_in(store) == digest_by_law(records)

    def test_the_next_one_goes_on_where_it_ended(self, tmp_path: Path, store: Store) -> None:
        data = [CODEC.encode(event) for event in commits(30)]
        self.appended(tmp_path, data[:20])
        assert written(LocalLogSource(tmp_path / "log", "g"), store).events == 20
        assert written(LocalLogSource(tmp_path / "log", "g"), store).events == 0, (
            "what was read before isn't waited for"
        )
        self.appended(tmp_path, data[20:])
        assert written(LocalLogSource(tmp_path / "log", "g"), store).events == 10

    def test_what_is_no_event_waits_among_the_dead_letters(self, tmp_path: Path, store: Store) -> None:
        good = [CODEC.encode(event) for event in commits(10)]
        bad = [b"", b"no event", good[3][:-2], good[4] + b"x"]
        records = self.appended(tmp_path, [*good[:5], *bad, *good[5:]])
        figures = written(LocalLogSource(tmp_path / "log", "g"), store)
        assert (figures.events, figures.dead_letters) == (14, 4)
        letters = [letter for _, letter in store.bulk.dead_letters()]
        assert sorted(letter.data for letter in letters) == sorted(bad)
        assert {letter.reason for letter in letters} == {DeadLetterReason.UNDECODABLE}
        assert {letter.state for letter in letters} == {DeadLetterState.WAITING}
        assert all(letter.error for letter in letters)
        assert digest_in(store) == digest_by_law([each for each in records if each[0] in good])

    def test_a_log_that_is_not_there_is_reported(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="name the directory that drivers write to"):
            LocalLogSource(tmp_path / "nowhere", "g")

    @staticmethod
    def appended(tmp_path: Path, data: list[bytes]) -> list[tuple[bytes, int | None]]:
        log = LocalLog.open(tmp_path / "log")
        with log.writer() as journal:
            for each in data:
                journal.append(each)
        records: list[tuple[bytes, int | None]] = []
        for partition in log.partitions():
            reader = log.reader(partition)
            with reader.tail(reader.first_offset()) as tail:
                while batch := tail.read().records:
                    records += [(record.value, record.time) for record in batch]
        return records


@pytest.mark.kafka
@pytest.mark.database
class TestKafka:
    @pytest.fixture
    def topic(self, kafka: KafkaServer) -> str:
        return new_topic(kafka.address, "written", 3)

    @pytest.fixture
    def url(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
        with database_on("postgres", request, tmp_path) as url:
            yield url.render_as_string(hide_password=False)

    @pytest.fixture
    def store(self, url: str) -> Iterator[Store]:
        with open_store(url) as opened:
            yield opened

    def test_what_is_on_a_topic_is_in_the_store(self, kafka: KafkaServer, topic: str, store: Store) -> None:
        produced(kafka, topic, [CODEC.encode(event) for event in [*EXAMPLES, *commits(3_000)]])
        figures = written(self.source(kafka, topic, store), store)
        assert figures.events == len(EXAMPLES) + 3_000
        assert digest_in(store) == digest_by_law(on_topic(kafka, topic))

    def test_offsets_are_the_stores_whatever_the_broker_has(self, kafka: KafkaServer, topic: str, store: Store) -> None:
        produced(kafka, topic, [CODEC.encode(event) for event in commits(50)])
        assert written(self.source(kafka, topic, store), store).events == 50
        client = Consumer({**kafka.client_config(), "group.id": "g", "enable.auto.commit": "false"})
        client.commit(offsets=[TopicPartition(topic, number, 0) for number in range(3)], asynchronous=False)
        client.close()
        assert written(self.source(kafka, topic, store), store).events == 0

    def test_what_expired_unread_is_a_gap(self, kafka: KafkaServer, topic: str, store: Store) -> None:
        produced(kafka, topic, [CODEC.encode(event) for event in commits(50)])
        assert written(self.source(kafka, topic, store), store).events == 50
        client = AdminClient(kafka.client_config())
        for expired in (10, 12):  # what expires after a gap was found is a gap of its own
            produced(kafka, topic, [CODEC.encode(event) for event in commits(62)[-expired:]])
            gone = [TopicPartition(topic, number, end) for number, end in ends_of(kafka, topic).items()]
            for future in client.delete_records(gone).values():
                future.result()
            figures = written(self.source(kafka, topic, store), store)
            assert figures.events == 0
        with store.engine.connect() as connection:
            reported = connection.exec_driver_sql("SELECT reason, bounds FROM gaps").all()
        assert {reason for reason, _ in reported} == {"LOG_EXPIRED"}
        assert sum(int(bounds.split('"missed":')[1].split(",")[0].rstrip("}")) for _, bounds in reported) == 22

    def test_writers_that_are_killed_lose_and_change_nothing(
        self, kafka: KafkaServer, topic: str, url: str, store: Store
    ) -> None:
        data = [CODEC.encode(event) for event in commits(6_000)]
        sending = threading.Thread(target=produced, args=(kafka, topic, data, 50))
        sending.start()
        killed = 0
        try:
            while sending.is_alive():
                with writer_process(kafka, topic, url, "--batch", "200") as process:
                    assert process.stdout is not None
                    wait_for_rows(store, process, len(data))
                    process.send_signal(signal.SIGKILL)
                    killed += process.wait() == -signal.SIGKILL
        finally:
            sending.join()
        assert killed
        with writer_process(kafka, topic, url, "--until-end") as process:
            assert process.wait(PATIENCE) == 0
        assert digest_in(store) == digest_by_law(on_topic(kafka, topic))

    def test_a_writer_that_is_told_to_stop_ends_well(
        self, kafka: KafkaServer, topic: str, url: str, store: Store
    ) -> None:
        with store.engine.connect() as connection:
            before = connection.exec_driver_sql("SELECT count(*) FROM commits").scalar_one()
        produced(kafka, topic, [CODEC.encode(event) for event in commits(20)])
        with writer_process(kafka, topic, url) as process:
            wait_for_rows(store, process, before + 20)
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        with store.engine.connect() as connection:
            stored = connection.exec_driver_sql("SELECT count(*) FROM commits").scalar_one() - before
        assert stored
        assert re.search(rf"^ *events +{stored}$", out, re.MULTILINE), f"{stored} are stored: {out}"

    @staticmethod
    def source(kafka: KafkaServer, topic: str, store: Store) -> KafkaSource:
        settings = {name: str(value) for name, value in kafka.client_config().items()}
        return KafkaSource(settings, topic, "g", lambda cluster: store.bulk.offsets("g", cluster))
