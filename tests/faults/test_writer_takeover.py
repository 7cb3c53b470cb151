"""A writer that stands still with a batch in its hands while another one has its partitions, a group that is shared out
anew in mid-batch, a topic that is made anew: each event is there once in the end, and no offset goes back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from sqlalchemy import Engine, create_engine, select, text

from headwater.lineage.sql.writer_tables import OFFSETS
from headwater.lineage.store import open_store
from headwater.local import KafkaServer, Service
from tests.kit.events.many import encoded_events
from tests.kit.stores import own_database
from tests.kit.topics import new_topic, recreate_topic
from tests.kit.waiting import PATIENCE, until
from tests.kit.writers.process import WriterProcess
from tests.kit.writers.store_check import check_store, state_of

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.database,
    pytest.mark.slow,
    pytest.mark.sample(1),
]

NOT_THIS = "pid <> pg_backend_pid()"
PARTITIONS = 3
BATCH = 60
SETTINGS = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}
"""The shortest session that a broker allows unless it is configured otherwise."""


class Scene:
    """A topic and a store, and writers between them."""

    def __init__(self, kafka: KafkaServer, folder: Path, url: str) -> None:
        self._kafka, self._folder = kafka, folder
        self._source = encoded_events(10_000)
        self.topic, self.sent = new_topic(kafka.address, "takeover", PARTITIONS), list[bytes]()
        self.engine = create_engine(url, connect_args={"options": "-c search_path=headwater"})
        bus = ["--bus", f"kafka://{kafka.address}/{self.topic}", "--group", self.topic]
        how = ["--batch", str(BATCH)]
        self._flags = [*bus, *how, "--store", url]
        self._writers: list[WriterProcess] = []
        self.admin = AdminClient(kafka.client_config())

    def writer(self) -> WriterProcess:
        """A new one, which begins."""
        made = WriterProcess(self._folder / f"writer{len(self._writers)}.log", self._flags, SETTINGS)
        self._writers.append(made)
        made.start()
        return made

    def tell(self, count: int) -> None:
        producer = Producer({**self._kafka.client_config(), "enable.idempotence": True})
        for _ in range(count):
            self.sent.append(next(self._source))
            producer.produce(self.topic, self.sent[-1], partition=len(self.sent) % PARTITIONS)
        assert producer.flush(PATIENCE) == 0

    @property
    def offsets(self) -> Mapping[int, int]:
        with self.engine.connect() as connection:
            chosen = select(OFFSETS.c.partition_number, OFFSETS.c.next_offset)
            return {row.partition_number: row.next_offset for row in connection.execute(chosen)}

    @property
    def topics(self) -> set[str]:
        """Their ids, of those that anything is stored of."""
        with self.engine.connect() as connection:
            return set(connection.execute(select(OFFSETS.c.topic)).scalars())

    def stored_of(self, topic: str) -> int:
        with self.engine.connect() as connection:
            chosen = select(OFFSETS.c.next_offset).where(OFFSETS.c.topic == topic)
            return sum(connection.execute(chosen).scalars())

    def wait_for_all(self) -> None:
        """Until all that was reported is stored."""
        self.until(lambda: sum(self.offsets.values()) == len(self.sent))

    @contextmanager
    def no_offset_moves(self) -> Iterator[None]:
        """Whoever stores a batch comes to its offsets last, and stands there within the block."""
        with self.engine.connect() as connection:
            connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))  # others' alone is short
            connection.execute(text(f"LOCK TABLE {OFFSETS.name} IN SHARE MODE"))
            yield
            connection.rollback()

    def sessions(self, condition: str) -> int:
        """Of writers in this database."""
        asked = f"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND {condition}"
        with self.engine.connect() as connection:
            return int(connection.execute(text(asked)).scalar_one())

    def make_anew(self) -> None:
        recreate_topic(self.admin, self.topic, PARTITIONS)

    def members(self) -> Sequence[object]:
        asked = self.admin.describe_consumer_groups([self.topic])[self.topic]
        return list(asked.result().members)

    def wait_until_one_stands_at_its_offsets(self) -> None:
        self.until(lambda: self.sessions("wait_event_type = 'Lock'") > 0)

    def until(self, holds: Callable[[], object]) -> None:
        def words() -> str:
            said = "\n\n".join(each.words[-3_000:] for each in self._writers)
            return f"{self.offsets} of {len(self.sent)} events\n{said}"

        until(holds, words, PATIENCE, 0.05)

    def check(self) -> None:
        """All are told to stop, end well, and each event was applied once."""
        for each in self._writers:
            each.stop()
        faults = [(each.faults, each.words[-3_000:]) for each in self._writers if each.faults]
        assert not faults, faults
        assert check_store(self.engine, state_of(self.sent)) > 0

    def end(self) -> None:
        for each in self._writers:
            each.kill()
        self.engine.dispose()
        self.admin.delete_topics([self.topic])[self.topic].result()


def give_up_idle_transactions(engine: Engine, after: str) -> None:
    """As an administrator does; a writer's own limit is a minute."""
    with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(
            text(f"ALTER DATABASE {engine.url.database} SET idle_in_transaction_session_timeout = '{after}'")
        )


@pytest.fixture
def scene(kafka: KafkaServer, postgres: Service, tmp_path: Path) -> Iterator[Scene]:
    with own_database(postgres) as url:
        open_store(url).close()
        scene = Scene(kafka, tmp_path, url)
        try:
            yield scene
        finally:
            scene.end()


def test_what_a_zombie_stores_late_changes_nothing(scene: Scene) -> None:
    """It stands still in mid-transaction, before its offsets are written, until all of that and more is there."""
    give_up_idle_transactions(scene.engine, "3s")
    zombie = scene.writer()
    scene.tell(300)
    scene.wait_for_all()
    with scene.no_offset_moves():
        scene.tell(300)
        scene.wait_until_one_stands_at_its_offsets()
        zombie.freeze()
    # Not until it is seen idle: that lasts for three seconds, in which a busy machine may not look.
    scene.until(lambda: not scene.sessions("state = 'active' AND backend_type = 'client backend' AND " + NOT_THIS))
    scene.writer()
    scene.wait_for_all()
    scene.tell(300)
    scene.wait_for_all()
    before, said = scene.offsets, len(zombie.words)
    zombie.thaw()
    scene.until(lambda: "the store is back" in zombie.words[said:])
    scene.until(lambda: "came" in zombie.words[said:])  # it is a member again
    assert scene.offsets == before
    scene.tell(300)
    scene.wait_for_all()
    scene.check()


@pytest.mark.long
def test_a_group_is_shared_out_anew_in_mid_batch(scene: Scene) -> None:
    """What the first member had taken of partitions that go is stored by it, and reported again by the second."""
    first = scene.writer()
    scene.tell(300)
    scene.wait_for_all()
    with scene.no_offset_moves():
        scene.tell(600)
        scene.wait_until_one_stands_at_its_offsets()
        second = scene.writer()
        scene.until(lambda: len(scene.members()) == 2)
    scene.until(lambda: f"partitions of {scene.topic} go to another writer" in first.words)
    scene.until(lambda: re.search(r"came partitions=\[\d", second.words))
    scene.tell(300)
    scene.wait_for_all()
    scene.check()


def test_a_topic_that_is_made_anew_is_stored_from_its_beginning_and_the_older_one_has_gaps(scene: Scene) -> None:
    scene.writer()
    scene.tell(300)
    scene.wait_for_all()
    older = scene.topics
    scene.make_anew()
    scene.tell(600)  # more than of the older one: nothing shows a client that it is another
    scene.until(lambda: sum(scene.stored_of(each) for each in scene.topics - older) == 600)
    with scene.engine.begin() as connection:
        gaps = connection.execute(text("DELETE FROM gaps RETURNING reason, bounds")).all()
    assert {reason for reason, _ in gaps} == {"LOG_RECREATED"}
    assert len(gaps) == PARTITIONS
    scene.check()
