"""The coordinated pipeline: the same rows as the law's, and offsets behind rows at each moment, whatever goes wrong."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import threading
import time
import tracemalloc
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from sqlalchemy import event as on
from sqlalchemy import text

from headwater.consumers.sources.kafka import KafkaSource
from headwater.consumers.writer.coordinated import Coordinator, CoordinatorLimits
from headwater.events import Committed, JobStarted
from headwater.events.avro import Codec
from headwater.lineage.bulk import DeadLetterReason, InstantState, MergeResult, WriteBatch, WriterInstant, bump_epoch
from headwater.lineage.sql import METADATA, store_digest
from headwater.lineage.sql.errors import StoreUnreachableError
from headwater.lineage.store import Store, open_store
from headwater.local import KafkaServer
from headwater.testing.examples import EXAMPLES
from tests.benchmarks.mixture import events
from tests.integration import test_writer as writer
from tests.integration.coordinated_kit import (
    GROUP,
    Gate,
    Scripted,
    Watched,
    begun,
    coordinator,
    digest_by_law,
    lane,
    taken,
    written,
)
from tests.integration.stores import database_on
from tests.integration.test_writer import commits
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.database, pytest.mark.sample(5)]

CODEC = Codec()
MIXED = [*events(1_200), *EXAMPLES]
RECORDS = taken([CODEC.encode(each) for each in MIXED])
BY_LAW = digest_by_law([(event, record.append_time) for event, record in zip(MIXED, RECORDS, strict=True)])
SMALL = CoordinatorLimits(buckets=3, interval=0.01, bucket_rows=50, slice_bytes=20_000)
FEW = commits(300)
FEW_RECORDS = taken([CODEC.encode(each) for each in FEW])
FEW_BY_LAW = digest_by_law([(event, record.append_time) for event, record in zip(FEW, FEW_RECORDS, strict=True)])


class Killed(BaseException):
    """What a process knows of kill -9."""


@pytest.fixture(scope="module")
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with database_on("postgres", request, tmp_path_factory.mktemp("store")) as url:
        yield url.render_as_string(hide_password=False)


@pytest.fixture(scope="module")
def opened(url: str) -> Iterator[Store]:
    with open_store(url) as store:
        yield store


@pytest.fixture
def store(opened: Store) -> Iterator[Store]:
    """Empty."""
    yield opened
    names = ", ".join(table.name for table in METADATA.sorted_tables if table.name != "schema_version")
    with opened.engine.begin() as connection:
        connection.execute(text(f"TRUNCATE {names}"))


def digest_in(store: Store) -> str:
    with store.engine.connect() as connection:
        return store_digest(connection)


def ahead_of_rows(store: Store, offsets: dict[Any, int]) -> set[int]:
    """Barriers of events that the offsets are behind, and of which a row is missing. By another connection."""
    passed = {
        event.barrier
        for event, record in zip(FEW, FEW_RECORDS, strict=True)
        if isinstance(event, Committed) and record.offset < offsets.get(record.partition, 0)
    }
    with store.engine.connect() as connection:
        for table in ("commits", "reads", "writes"):
            there = set(connection.execute(text(f"SELECT barrier FROM {table}")).scalars())
            if passed - there:
                return passed - there
    return set()


class TestRows:
    @pytest.mark.parametrize("limits", [CoordinatorLimits(), SMALL], ids=["as it comes", "small"])
    def test_they_are_those_of_the_law(self, store: Store, limits: CoordinatorLimits) -> None:
        source = Scripted(RECORDS, store)
        running = written(coordinator(source, store, limits))
        assert digest_in(store) == BY_LAW
        assert running.metrics.events == len(MIXED)
        assert store.bulk.offsets(GROUP) == source.done_up_to
        assert all(each.state is InstantState.COMPLETED for each in store.bulk.instants(running.timeline.writer))

    def test_what_is_no_event_is_a_letter_in_the_transaction_of_the_offsets(self, store: Store) -> None:
        seen: list[WriteBatch] = []
        bad = [b"", b"no event", FEW_RECORDS[5].data[:-2]]
        data = [each.data for each in FEW_RECORDS]
        source = Scripted(taken([*data[:10], *bad, *data[10:]]), store)
        own = lane(Watched(store, before=seen.append))
        running = written(coordinator(source, store, SMALL, own=own))
        letters = [letter for _, letter in store.bulk.dead_letters()]
        assert sorted(letter.data for letter in letters) == sorted(bad)
        assert {letter.reason for letter in letters} == {DeadLetterReason.UNDECODABLE}
        assert running.metrics.dead_letters_by == {"UNDECODABLE": 3}
        assert all(work.offsets for work in seen if work.dead_letters)

    def test_transactions_that_met_another_one_are_counted(self, store: Store) -> None:
        class Met(Watched):
            def merge(self, work: WriteBatch) -> MergeResult:
                return replace(super().merge(work), retries=1)

        lanes = [lane(Met(store)) for _ in range(2)]
        running = written(coordinator(Scripted(FEW_RECORDS, store), store, SMALL, lanes))
        assert running.metrics.retries >= 2, "each of the two has flushed something"

    def test_what_the_database_refuses_is_found_event_by_event(self, store: Store) -> None:
        with refusing(store, "commits", "barrier NOT IN (13, 200)"):
            running = written(coordinator(Scripted(FEW_RECORDS, store), store, SMALL))
        letters = [letter for _, letter in store.bulk.dead_letters()]
        assert [letter.reason for letter in letters] == [DeadLetterReason.REFUSED] * 2
        assert sorted(letter.data for letter in letters) == sorted(FEW_RECORDS[n - 1].data for n in (13, 200))
        assert running.metrics.dead_letters == 2
        with store.engine.connect() as connection:
            there = set(connection.execute(text("SELECT barrier FROM commits")).scalars())
        assert there == {n for n in range(1, 301) if n not in {13, 200}}
        assert sum(store.bulk.offsets(GROUP).values()) == 300


def test_on_mariadb_they_are_the_same(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with (
        database_on("mariadb", request, tmp_path) as url,
        open_store(url.render_as_string(hide_password=False)) as store,
    ):
        running = written(coordinator(Scripted(FEW_RECORDS, store, at_once=20), store, SMALL))
        assert running.metrics.events == len(FEW)
        assert digest_in(store) == FEW_BY_LAW
        assert sum(store.bulk.offsets(GROUP).values()) == len(FEW)


class TestInstants:
    def test_one_is_requested_before_anything_of_it_is_flushed(self, store: Store) -> None:
        found: list[tuple[set[InstantState], dict[Any, int]]] = []
        running: Coordinator

        def look(_: WriteBatch) -> None:
            newest = list(store.bulk.instants(running.timeline.writer))[:1]
            found.append(({each.state for each in newest}, dict(store.bulk.offsets(GROUP))))

        lanes = [lane(Watched(store, before=look)) for _ in range(3)]
        source = Scripted(FEW_RECORDS, store, at_once=20, most_ahead=20)
        running = coordinator(source, store, SMALL, lanes)
        written(running)
        assert len(found) > 10
        assert not [states for states, _ in found if states not in ({InstantState.REQUESTED}, {InstantState.INFLIGHT})]

    def test_offsets_follow_rows_and_go_forward_instant_by_instant(self, store: Store) -> None:
        works: list[WriteBatch] = []
        missing: set[int] = set()

        def look(work: WriteBatch) -> None:
            works.append(work)
            missing.update(ahead_of_rows(store, {each.partition: each.next for each in work.offsets}))

        source = Scripted(FEW_RECORDS, store, at_once=20, most_ahead=20)
        running = written(coordinator(source, store, SMALL, own=lane(Watched(store, before=look))))
        with_offsets = [work for work in works if work.offsets]
        assert len(with_offsets) > 3
        assert not missing
        assert all([each.state for each in work.instants] == [InstantState.COMPLETED] for work in with_offsets)
        numbers = [each.number for work in with_offsets for each in work.instants]
        assert numbers == list(range(1, len(with_offsets) + 1)), "in order"
        assert running.metrics.batches == len(with_offsets)

    def test_while_a_bucket_stalls_the_others_go_on_and_the_instant_spans_intervals(self, store: Store) -> None:
        gate = Gate()
        lanes = [lane(Watched(store, before=gate)), *[lane(Watched(store)) for _ in range(2)]]
        source = Scripted(FEW_RECORDS, store, at_once=20)
        running = coordinator(source, store, SMALL, lanes)
        with begun(running) as thread:
            assert gate.came.wait(60)
            until(lambda: source.given == 300 and running.waiting[1:] == [0, 0])
            assert store.bulk.offsets(GROUP) == {}, "one bucket has written nothing"
            with store.engine.connect() as connection:
                assert connection.execute(text("SELECT count(*) FROM commits")).scalar_one() > 50
            assert {each.state for each in store.bulk.instants(running.timeline.writer)} == {
                InstantState.REQUESTED,
                InstantState.INFLIGHT,
            }
            gate.open()
            thread.join(60)
        assert digest_in(store) == FEW_BY_LAW
        assert running.metrics.batches == 2, "the second one gathered all that came meanwhile"

    def test_what_a_writer_left_is_reported_and_marked_and_nothing_is_taken_back(
        self, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        source = Scripted(FEW_RECORDS, store, at_once=20, most_ahead=20)
        killed = coordinator(source, store, SMALL, own=lane(Watched(store, dies_at(9))))
        with pytest.raises(Killed):
            written(killed)
        left, *others = list(store.bulk.unfinished_instants())
        assert len(others) <= 1, "one that waits for its buckets, and one that gathers"
        assert {each.writer for each in (left, *others)} == {killed.timeline.writer}
        assert json.loads(left.detail or "")["group"] == GROUP
        with caplog.at_level(logging.WARNING):
            written(coordinator(Scripted(FEW_RECORDS, store), store, SMALL))
        assert f"before its instant {left.number} was completed" in caplog.text
        assert next(store.bulk.instants(left.writer)).state is InstantState.GIVEN_UP
        assert not list(store.bulk.unfinished_instants())
        assert digest_in(store) == FEW_BY_LAW

    def test_a_writer_that_lives_is_not_marked(self, store: Store) -> None:
        detail = json.dumps({"group": GROUP, "host": "elsewhere", "process": 1, "at": 9e9})
        other = WriterInstant(UUID(int=5), 3, InstantState.INFLIGHT, detail)
        store.bulk.merge(WriteBatch(instants=[other]))
        written(coordinator(Scripted(FEW_RECORDS[:5], store), store))
        assert list(store.bulk.unfinished_instants()) == [other]

    def test_where_something_went_from_the_disk_meanwhile_all_of_the_instant_is_written_again(
        self, store: Store
    ) -> None:
        """Another process saw a part of a barrier and purged it: then the rest of it came."""
        own = PurgedMeanwhile(store)
        written(coordinator(Scripted(FEW_RECORDS, store), store, own=lane(own)))
        assert own.gone == [1]
        assert digest_in(store) == FEW_BY_LAW


class PurgedMeanwhile(Watched):
    """When all of an instant is written, and before its offsets are."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.gone: list[int] = []

    def merge(self, work: WriteBatch) -> MergeResult:
        if work.offsets and not self.gone:
            with self.engine.begin() as connection:
                bump_epoch(connection)
                self.gone.append(connection.execute(text("DELETE FROM commits WHERE barrier = 7")).rowcount)
        return super().merge(work)


class TestIndex:
    def test_what_another_process_took_away_is_written_when_it_is_reported_again(self, store: Store) -> None:
        """Datasets and shapes are known by then, and are left out as long as the store is as it was."""
        source = Scripted(FEW_RECORDS, store, at_once=1_000)
        running = coordinator(source, store, CoordinatorLimits(), until_end=False)
        again = [each._replace(offset=each.offset + 1_000) for each in FEW_RECORDS]
        with begun(running):
            until(lambda: sum(source.done_up_to.values()) == len(FEW_RECORDS))
            source.more(again)
            until(lambda: running.metrics.events == 2 * len(FEW_RECORDS))
            hits = running.index.hits
            with store.engine.begin() as connection:
                bump_epoch(connection)
                gone = connection.execute(text("DELETE FROM datasets")).rowcount
            source.more([each._replace(offset=each.offset + 1_000) for each in again])
            until(lambda: running.metrics.events == 3 * len(FEW_RECORDS))
        assert gone == 40
        assert hits > 30, "nothing was left out"
        assert digest_in(store) == FEW_BY_LAW

    def test_what_goes_while_an_instant_leaves_it_out_is_written_after_all(self, store: Store) -> None:
        source, own = Scripted(FEW_RECORDS, store, at_once=1_000), DatasetsGoMeanwhile(store)
        running = coordinator(source, store, CoordinatorLimits(), until_end=False, own=lane(own))
        with begun(running):
            until(lambda: sum(source.done_up_to.values()) == len(FEW_RECORDS))
            own.is_armed = True
            source.more([each._replace(offset=each.offset + 1_000) for each in FEW_RECORDS])
            until(lambda: running.metrics.events == 2 * len(FEW_RECORDS))
        assert own.gone == 40
        assert digest_in(store) == FEW_BY_LAW


class DatasetsGoMeanwhile(Watched):
    """When all of an instant is written, and before its offsets are."""

    is_armed = False
    gone = 0

    def merge(self, work: WriteBatch) -> MergeResult:
        if work.offsets and self.is_armed:
            self.is_armed = False
            with self.engine.begin() as connection:
                bump_epoch(connection)
                self.gone = connection.execute(text("DELETE FROM datasets")).rowcount
        return super().merge(work)


def dies_at(count: int) -> Callable[[WriteBatch], None]:
    """With the transaction of this number."""
    numbers = iter(range(1, count))

    def die(_: WriteBatch) -> None:
        if next(numbers, None) is None:
            raise Killed

    return die


def unreachable(_: WriteBatch) -> None:
    raise StoreUnreachableError("nobody answers")


@contextmanager
def refusing(store: Store, table: str, condition: str) -> Generator[None]:
    """A database that takes only some of a table's rows."""
    with store.engine.begin() as connection:
        connection.execute(text(f"ALTER TABLE {table} ADD CONSTRAINT takes_some CHECK ({condition})"))
    try:
        yield
    finally:
        with store.engine.begin() as connection:
            connection.execute(text(f"ALTER TABLE {table} DROP CONSTRAINT takes_some"))


class TestFaults:
    @pytest.mark.parametrize("where", ["own", "bucket"])
    @pytest.mark.parametrize("is_before", [True, False], ids=["before", "after"])
    def test_killed_at_any_transaction_offsets_are_behind_rows(
        self, store: Store, where: str, *, is_before: bool
    ) -> None:
        random = Random(f"{where} {is_before}")
        for _ in range(4):
            dies = dies_at(random.randrange(1, 12))
            watched = Watched(store, dies) if is_before else Watched(store, after=dies)
            lanes = [lane(watched if where == "bucket" and n == 0 else Watched(store)) for n in range(3)]
            own = lane(watched if where == "own" else Watched(store))
            try:
                written(coordinator(Scripted(FEW_RECORDS, store, at_once=40), store, SMALL, lanes, own=own))
            except Killed:
                assert not ahead_of_rows(store, dict(store.bulk.offsets(GROUP)))
        written(coordinator(Scripted(FEW_RECORDS, store), store, SMALL))
        assert digest_in(store) == FEW_BY_LAW

    def test_a_connection_that_dies_in_mid_flush_is_made_anew_and_all_is_repeated(self, store: Store) -> None:
        died: list[int] = []
        bucket = Watched(store)

        @on.listens_for(bucket.engine, "before_cursor_execute")
        def die(connection: Any, _: Any, statement: str, *__: Any) -> None:
            if len(died) < 3 and "INSERT INTO" in statement:
                process = connection.connection.driver_connection.info.backend_pid
                died.append(process)
                with store.engine.connect() as other:
                    other.execute(text("SELECT pg_terminate_backend(:process, 10000)"), {"process": process})

        running = coordinator(Scripted(FEW_RECORDS, store), store, SMALL, [lane(bucket), lane(Watched(store))])
        written(running)
        assert len(set(died)) == 3
        assert digest_in(store) == FEW_BY_LAW

    def test_a_flush_that_nobody_answers_is_broken_off_and_repeated(
        self, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        limits = CoordinatorLimits(buckets=2, flush_seconds=2)
        with store.engine.connect() as holder:
            holder.execute(text("LOCK TABLE commits IN EXCLUSIVE MODE"))
            running = coordinator(Scripted(FEW_RECORDS, store), store, limits)
            with begun(running) as thread:
                until(lambda: running.metrics.waiting_for is not None)
                assert "the call is aborted and repeated" in caplog.text
                assert store.bulk.offsets(GROUP) == {}
                holder.rollback()
                thread.join(60)
        assert digest_in(store) == FEW_BY_LAW

    def test_one_that_is_told_to_stop_finishes_what_it_has(self, store: Store) -> None:
        source = Scripted(FEW_RECORDS, store, at_once=20)
        running = coordinator(source, store, SMALL, until_end=False)
        with begun(running) as thread:
            until(lambda: running.metrics.events >= 100)
            running.stop()
            thread.join(60)
        assert store.bulk.offsets(GROUP) == source.done_up_to
        assert sum(source.done_up_to.values()) == source.given

    def test_one_that_has_no_room_when_it_is_told_to_stop_finishes_too(self, store: Store) -> None:
        gate, source = Gate(), Scripted(FEW_RECORDS, store, at_once=20)
        lanes = [lane(Watched(store, before=gate)) for _ in range(2)]
        running = coordinator(source, store, CoordinatorLimits(buffer_bytes=1_000), lanes, until_end=False)
        with begun(running) as thread:
            until(lambda: source.rests > 0)
            running.stop()
            gate.open()
            thread.join(60)
        assert source.given > 0
        assert sum(store.bulk.offsets(GROUP).values()) == source.given

    def test_one_that_waits_for_the_store_can_be_stopped(self, store: Store) -> None:
        lanes = [lane(Watched(store, before=unreachable))]
        running = coordinator(Scripted(FEW_RECORDS, store), store, SMALL, lanes, until_end=False)
        with begun(running) as thread:
            until(lambda: running.metrics.waiting_for is not None)
            assert running.metrics.waits_by == {"the store": 1}
            assert not running.metrics.is_ready
            running.stop()
            thread.join(60)
        assert store.bulk.offsets(GROUP) == {}


class TestMemory:
    def test_while_nothing_can_be_written_what_is_taken_is_bounded(self, store: Store) -> None:
        """Events of a megabyte each: the buffer has room for a few."""
        started = next(each for each in EXAMPLES if isinstance(each, JobStarted))
        huge = [
            started.model_copy(
                update={"sequence": n, "family_sequence": n, "configuration": {"long": f"{n}" + "x" * 950_000}}
            )
            for n in range(1, 121)
        ]
        records = taken([CODEC.encode(each) for each in huge])
        limits = CoordinatorLimits(buckets=2, buffer_bytes=16 << 20)
        gate, source = Gate(), Scripted(records, store, at_once=10)
        tracemalloc.start()
        try:
            with begun(coordinator(source, store, limits, [lane(Watched(store, gate)) for _ in range(2)])) as thread:
                until(lambda: source.rests >= 2)
                given, held = source.given, tracemalloc.get_traced_memory()[0]
                gate.open()
                thread.join(120)
                peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert given < 60, "all of them were polled"
        assert held < 100 << 20
        assert peak < 200 << 20
        assert source.given == 120
        assert sum(store.bulk.offsets(GROUP).values()) == 120


@pytest.mark.kafka
class TestKafka:
    @pytest.fixture
    def topic(self, kafka: KafkaServer) -> str:
        name = f"coordinated-{uuid4()}"
        new = NewTopic(name, 3, 1, config={"message.timestamp.type": "LogAppendTime"})
        client = AdminClient(kafka.client_config())  # ends what it was asked for when it goes
        client.create_topics([new])[name].result()
        return name

    def test_processes_that_are_killed_lose_and_change_nothing(
        self, kafka: KafkaServer, topic: str, url: str, store: Store
    ) -> None:
        """Two at once, one of which is killed again and again at some moment."""
        data = [CODEC.encode(event) for event in commits(4_000)]
        sending = threading.Thread(target=writer.produced, args=(kafka, topic, data, 20))
        flags = ["--pipeline", "coordinated", "--instant-interval", "20ms", "--bucket-max-rows", "40", "--batch", "50"]
        killed = 0
        sending.start()
        try:
            with started(kafka, topic, url, *flags) as other:
                while sending.is_alive() or killed < 2:
                    with started(kafka, topic, url, *flags) as process:
                        writer.TestKafka.wait_for_rows(store, process, len(data))
                        process.kill()
                        assert process.wait() == -signal.SIGKILL
                        killed += 1
                    self.check_offsets(store)
                other.kill()
        finally:
            sending.join()
        with started(kafka, topic, url, *flags, "--until-end") as process:
            assert process.wait(120) == 0
        assert digest_in(store) == writer.digest_by_law(writer.on_topic(kafka, topic))
        assert sum(store.bulk.offsets("g").values()) == 4_000
        assert not any(
            each.state is InstantState.INFLIGHT for each in store.bulk.unfinished_instants() if is_of(each, process.pid)
        )

    @staticmethod
    def check_offsets(store: Store) -> None:
        """First how far they are, then the rows: these may only grow meanwhile."""
        offsets = store.bulk.offsets("g")
        with store.engine.connect() as connection:
            for table in ("commits", "reads", "writes"):
                there = set(connection.execute(text(f"SELECT barrier FROM {table}")).scalars())
                for partition, at in offsets.items():
                    first = partition.number or 3
                    assert there.issuperset(range(first, first + 3 * at, 3))

    @pytest.mark.long
    def test_who_has_no_room_stays_in_its_group(self, kafka: KafkaServer, topic: str, store: Store) -> None:
        """For longer than a member may go without polling."""
        writer.produced(kafka, topic, [CODEC.encode(event) for event in FEW])
        settings = {name: str(value) for name, value in kafka.client_config().items()}
        settings |= {"max.poll.interval.ms": "6000", "session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}
        source = KafkaSource(settings, topic, GROUP, lambda cluster: store.bulk.offsets(GROUP, cluster))
        gate, limits = Gate(), CoordinatorLimits(buckets=2, buffer_bytes=1_000)
        closed_at = time.monotonic()
        lanes = [lane(Watched(store, before=gate)) for _ in range(2)]
        running = coordinator(source, store, limits, lanes, most=20)
        with begun(running) as thread:
            assert gate.came.wait(60)
            while time.monotonic() < closed_at + 10:
                assert members(kafka) == 1
                time.sleep(0.2)
            until(lambda: running.metrics.partitions == 3)
            assert running.metrics.rebalances > 0
            writer.produced(kafka, topic, [CODEC.encode(event) for event in commits(330)[300:]])
            gate.open()
            thread.join(60)
        source.close()
        assert sum(store.bulk.offsets(GROUP).values()) == 330
        assert digest_in(store) == writer.digest_by_law(writer.on_topic(kafka, topic))


@contextmanager
def started(kafka: KafkaServer, topic: str, url: str, *more: str) -> Generator[subprocess.Popen[str]]:
    process = writer.TestKafka.writer(kafka, topic, url, *more)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def members(kafka: KafkaServer) -> int:
    client = AdminClient(kafka.client_config())
    return len(client.describe_consumer_groups([GROUP])[GROUP].result().members)


def is_of(instant: WriterInstant, process: int) -> bool:
    return bool(json.loads(instant.detail or "{}").get("process") == process)
