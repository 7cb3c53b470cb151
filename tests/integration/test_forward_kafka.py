"""Forwarders on a real broker and on a local log: what arrives, who goes on where, and what is lost and said so."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from headwater.cli.app import main
from headwater.consumers.sources import group_start
from headwater.consumers.sources.group_start import GroupStart, KafkaGroup
from headwater.errors import TransientError
from headwater.events import Event
from headwater.events.avro import Codec
from headwater.events.keys import headers_of, key_of
from headwater.journal import JournalOptions, LocalLog
from headwater.local import KafkaServer
from tests.kit.forwarders.process import RECORDER, Arrival, ForwardProcess
from tests.kit.forwarders.stage import commit
from tests.kit.topics import new_topic
from tests.kit.waiting import attempts

PARTITIONS = 4
JOBS = 20


def commits(first: int, end: int) -> list[Event]:
    """Each job has a producer of its own."""
    return [commit(number, f"job-{number % JOBS}", producer=number % JOBS + 1) for number in range(first, end)]


def expected_by_key(events: Iterable[Event]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for event in events:
        found[key_of(event).hex()].append(str(event.event_id))
    return dict(found)


class Topic:
    """A topic of its own."""

    def __init__(self, kafka: KafkaServer) -> None:
        self.name = new_topic(kafka.address, "forwarded", PARTITIONS)
        self.admin = AdminClient(kafka.client_config())
        self._producer = Producer({**kafka.client_config(), "enable.idempotence": True})
        self.bus = f"kafka://{kafka.address}/{self.name}"

    def append(self, events: Iterable[Event]) -> None:
        for event in events:
            headers: Any = list(headers_of(event, bytes(8)))
            self._producer.produce(self.name, Codec().encode(event), key_of(event), headers=headers)
            self._producer.poll(0)
        assert self._producer.flush(60) == 0

    def ends(self) -> dict[int, int]:
        latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = {TopicPartition(self.name, number): latest for number in range(PARTITIONS)}
        return {each.partition: future.result().offset for each, future in self.admin.list_offsets(asked).items()}

    def expire(self) -> int:
        """Remove all records; return how many."""
        ends = self.ends()
        gone = [TopicPartition(self.name, number, end) for number, end in ends.items() if end]
        for future in self.admin.delete_records(gone).values():
            future.result()
        return sum(ends.values())


class LogBus:
    """A local log."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.bus = f"log:{place}"

    def append(self, events: Iterable[Event], limits: JournalOptions | None = None) -> None:
        with LocalLog.open(self.place, limits).writer() as journal:
            for event in events:
                journal.append(Codec().encode(event), key=key_of(event), headers=headers_of(event, bytes(8)))


@pytest.fixture
def topic(kafka: KafkaServer) -> Topic:
    return Topic(kafka)


class Here:
    """Runs the command in this process, until the end of the bus."""

    def __init__(self, bus: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.file = folder / "target"
        self._flags = ["--state", str(folder / "state"), "--option", f"one.type={RECORDER}"]
        self._flags += ["--option", f"one.file={self.file}"]
        self._bus = bus
        self._capsys = capsys

    def run(self, *flags: str) -> int:
        """Return how many events were sent."""
        answer = self._answer("run", "one", "--bus", self._bus, "--until-end", *self._flags, *flags)
        sent: int = answer["forwarded"][0]["sent"]
        return sent

    def status(self) -> Any:
        return self._answer("status", *self._flags[:2], code=1)

    def _answer(self, *words: str, code: int = 0) -> Any:
        self._capsys.readouterr()
        assert main(["-o", "json", "forward", *words]) == code
        return json.loads(self._capsys.readouterr().out)


@pytest.mark.kafka
class TestTopic:
    @pytest.fixture
    def here(self, topic: Topic, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Here:
        return Here(topic.bus, tmp_path, capsys)

    def test_events_arrive_in_order_per_key_and_the_group_goes_on(self, topic: Topic, here: Here) -> None:
        events = commits(1, 400)
        topic.append(events[:300])
        assert here.run() == 300
        topic.append(events[300:])
        assert here.run() == 99
        assert Arrival([here.file]).by_key() == expected_by_key(events)
        assert Arrival([here.file]).copies == 0
        assert here.status()["forwarders"][0]["lag"] == 0

    @pytest.mark.long
    def test_records_that_expired_unread_are_a_gap_that_is_sent_and_seen(self, topic: Topic, here: Here) -> None:
        topic.append(commits(1, 101))
        assert here.run() == 100
        topic.append(commits(101, 201))
        before = topic.ends()
        assert sum(before.values()) == 200
        topic.expire()
        gaps = here.run()
        assert 1 <= gaps <= PARTITIONS
        lost = here.status()["lost_records"]
        assert sum(row["next_offset"] - row["first_offset"] for row in lost) == 100
        assert {row["reason"] for row in lost} == {"LOG_EXPIRED"}
        assert len(Arrival([here.file]).ids) == 100 + gaps
        assert here.run() == 0

    @pytest.mark.long
    def test_one_that_begins_with_an_archive_gets_what_the_topic_forgot(
        self, topic: Topic, here: Here, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = tmp_path / "archive"
        start = ("--start", "archive", "--archive", str(folder))
        events = commits(1, 301)
        topic.append(events[:200])
        assert main(["archive", "run", "--bus", topic.bus, "--archive", str(folder), "--until-end"]) == 0
        topic.append(events[200:250])
        topic.expire()
        topic.append(events[250:])
        before = here.run(*start)
        lost = here.status()["lost_records"]
        assert sum(row["next_offset"] - row["first_offset"] for row in lost) == 50
        assert before == 250 + len(lost)
        missing = {str(each.event_id) for each in events[200:250]}
        of_keys = {key: [each for each in ids if each not in missing] for key, ids in expected_by_key(events).items()}
        arrived = Arrival([here.file])
        assert {key: ids for key, ids in arrived.by_key().items() if key in of_keys} == of_keys
        assert arrived.copies == 0
        assert here.run(*start) == 0

    @pytest.mark.long
    def test_one_whose_offsets_the_broker_forgot_goes_on_where_it_was(self, topic: Topic, here: Here) -> None:
        """As it does with those of a group that nobody reads in for a week."""
        topic.append(commits(1, 101))
        assert here.run("--start", "end") == 0
        topic.append(commits(101, 151))
        assert here.run("--start", "end") == 50
        topic.append(commits(151, 201))
        for _ in attempts("the group to be empty", 30.0):
            try:
                topic.admin.delete_consumer_groups(["headwater-forward-one"])["headwater-forward-one"].result()
                break
            except Exception as e:  # noqa: BLE001 - a member may still be leaving
                last = e
        else:
            raise last
        assert here.run("--start", "end") == 50
        assert Arrival([here.file]).by_key() == expected_by_key(commits(101, 201))

    def test_a_plan_finds_the_newest_events_of_a_topic(
        self, topic: Topic, here: Here, capsys: pytest.CaptureFixture[str]
    ) -> None:
        topic.append(commits(1, 101))
        words = ["plan", "one", "--bus", topic.bus, "--table", "w/job-7", "--limit", "2", *here._flags]
        rows = here._answer(*words)["messages"]
        assert [row["event"].rpartition("-")[2] for row in rows] == ["67", "87"]


@pytest.mark.slow
class TestLog:
    def test_events_arrive_in_order_and_what_expired_is_a_gap(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        log = LogBus(tmp_path / "log")
        here = Here(log.bus, tmp_path, capsys)
        log.append(commits(1, 101))
        assert here.run() == 100
        assert Arrival([here.file]).by_key() == expected_by_key(commits(1, 101))
        log.append(commits(101, 1_101), JournalOptions(segment_bytes=16 << 10, max_bytes=64 << 10))
        sent = here.run()
        lost = here.status()["lost_records"]
        missing = sum(row["next_offset"] - row["first_offset"] for row in lost)
        assert missing > 0
        assert sent == 1_000 - missing + len(lost)


@pytest.mark.kafka
@pytest.mark.long
class TestProcesses:
    """Two processes of one group."""

    @pytest.fixture
    def targets(self, tmp_path: Path) -> dict[str, Path]:
        return {name: tmp_path / name for name in ("a", "b")}

    def process(self, topic: Topic, file: Path) -> ForwardProcess:
        options = {"one": {"type": RECORDER, "file": str(file), "batch": "50"}}
        return ForwardProcess(topic.bus, file.with_suffix(".state"), options)

    def test_partitions_are_shared_and_taken_over(self, topic: Topic, targets: dict[str, Path]) -> None:
        events: list[Event] = []
        with self.process(topic, targets["a"]) as first:
            events += self._send(topic, 1, 1_001)
            self._await(targets, events)
            with self.process(topic, targets["b"]) as second:
                second.await_status("one", "running")
                at = 1_001
                for _ in attempts("the second one to get something", 60.0):
                    events += self._send(topic, at, at + 200)
                    at += 200
                    if targets["b"].exists():
                        break
                second.kill()
                events += self._send(topic, at, at + 1_000)
                at += 1_000
                assert first.stop() == 0
                with self.process(topic, targets["b"]):
                    events += self._send(topic, at, at + 1_000)
                    self._await(targets, events)
        arrived = Arrival(targets.values())
        assert arrived.by_key() == expected_by_key(events)

    def test_a_partition_that_goes_while_its_batch_is_in_flight_is_the_others(
        self, topic: Topic, targets: dict[str, Path]
    ) -> None:
        """One whose target is away holds a batch of each partition; another process takes some of them over."""
        away = targets["a"].with_suffix(".away")
        away.touch()
        events = self._send(topic, 1, 101)
        with self.process(topic, targets["a"]) as first:
            first.await_status("one", "waiting")
            with self.process(topic, targets["b"]) as second:
                second.await_status("one", "running")
                for _ in attempts("the second one to have sent its share", 60.0):
                    if targets["b"].exists() and second.status("one").lag == 0:
                        break
                share = {line[1] for line in Arrival([targets["b"]]).lines}
                assert 0 < len(share) < PARTITIONS
                away.unlink()
                self._await(targets, events)
                assert first.stop() == 0
                assert second.stop() == 0
        assert {line[1] for line in Arrival([targets["a"]]).lines} & share == set()
        assert Arrival(targets.values()).by_key() == expected_by_key(events)
        assert Arrival(targets.values()).copies == 0

    def _send(self, topic: Topic, first: int, end: int) -> list[Event]:
        events = commits(first, end)
        topic.append(events)
        return events

    def _await(self, targets: dict[str, Path], events: list[Event]) -> None:
        wanted = {str(each.event_id) for each in events}
        for _ in attempts("everything to arrive", 90.0):
            if wanted <= set(Arrival(targets.values()).ids):
                return


@pytest.mark.kafka
class TestGroupWithMembersElsewhere:
    """Kafka refuses offsets from outside while a group has members, of whatever topic."""

    @pytest.fixture
    def group(self) -> str:
        return f"group-{uuid4()}"

    @pytest.fixture
    def member(self, kafka: KafkaServer, group: str) -> Iterator[Consumer]:
        elsewhere = Topic(kafka)
        member = Consumer({**kafka.client_config(), "group.id": group})
        member.subscribe([elsewhere.name])
        for _ in attempts("the member to have partitions"):
            member.poll(0.2)
            if member.assignment():
                break
        yield member
        member.close()

    @pytest.mark.long
    def test_who_leaves_is_waited_for(self, kafka: KafkaServer, topic: Topic, group: str, member: Consumer) -> None:
        """It finds a group that was to begin at the end, and begins at the beginning."""
        topic.append(commits(1, 101))
        starting = KafkaGroup(kafka.client_config(), topic.name, group, pause=lambda _: member.close())
        starting.begin(GroupStart.END, {})
        asked = [TopicPartition(topic.name, number) for number in range(PARTITIONS)]
        with closing(Consumer({**kafka.client_config(), "group.id": group})) as client:
            assert {each.partition: each.offset for each in client.committed(asked, timeout=60)} == topic.ends()

    def test_who_stays_is_an_error(
        self, kafka: KafkaServer, topic: Topic, group: str, member: Consumer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(group_start, "_WAIT_SECONDS", 1.0)
        starting = KafkaGroup(kafka.client_config(), topic.name, group, pause=member.poll)
        with pytest.raises(TransientError, match=rf"others are in the group {group} and have no offsets of"):
            starting.begin(GroupStart.END, {})
