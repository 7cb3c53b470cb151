"""A topic that isn't there, goes, comes again, or takes less than it did."""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from headwater.journal import LocalLog
from tests.kit.kafka.conf import kafka_conf
from tests.kit.kafka.driver import driver_of
from tests.kit.kafka.stage import Stage, new_topic
from tests.kit.kafka.topic_check import check_topic
from tests.kit.kafka.topic_copies import copies_on
from tests.kit.waiting import PATIENCE

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def settings_of(staged: Stage, topic: str) -> dict[str, str]:
    """As the broker tells them."""
    admin: AdminClient = staged.admin()
    wanted = ConfigResource(ResourceType.TOPIC, topic)
    answer = admin.describe_configs([wanted], request_timeout=PATIENCE)[wanted].result(PATIENCE)
    return {name: entry.value for name, entry in answer.items()}


def partitions_of(staged: Stage, topic: str) -> int:
    admin = staged.admin()
    return len(admin.list_topics(topic, timeout=PATIENCE).topics[topic].partitions)


def test_a_topic_that_is_missing_is_made(staged: Stage, tmp_path: Path) -> None:
    topic = new_topic()
    more = {"topic.partitions": "4", "topic.retention": "3 days", "topic.config.max.message.bytes": "1500000"}
    with driver_of(kafka_conf(staged.address, topic, tmp_path, **more)) as driver:
        driver.tell(100)
        driver.deliver()
    copies = copies_on(staged.config(), topic)
    check_topic(driver.emitted, copies)
    assert all(copy.is_broker_time for copy in copies)
    assert partitions_of(staged, topic) == 4
    settings = settings_of(staged, topic)
    assert settings["message.timestamp.type"] == "LogAppendTime"
    assert settings["retention.ms"] == str(3 * 24 * 3600 * 1000)
    assert settings["max.message.bytes"] == "1500000"


@pytest.mark.long
def test_where_it_must_not_be_made_the_command_is_reported_and_works(staged: Stage, tmp_path: Path) -> None:
    topic = new_topic()
    with driver_of(kafka_conf(staged.address, topic, tmp_path, topic_create="false")) as driver:
        driver.tell(100)
        driver.until_it_says("kafka-topics.sh")
        assert not staged.has(topic)
        answer = re.search(r"kafka-topics\.sh (.*)", driver.kafka.last_error)
        assert answer is not None
        _obey(staged, shlex.split(answer[1]))
        driver.deliver()
    check_topic(driver.emitted, copies_on(staged.config(), topic))
    assert settings_of(staged, topic)["message.timestamp.type"] == "LogAppendTime"


def _obey(staged: Stage, words: list[str]) -> None:
    """As Kafka's program would; its library isn't among the broker's."""
    command = ArgumentParser(exit_on_error=False)
    command.add_argument("--create", action="store_true", required=True)
    command.add_argument("--bootstrap-server", choices=[staged.address], required=True)
    command.add_argument("--topic", required=True)
    command.add_argument("--partitions", type=int, required=True)
    command.add_argument("--config", action="append", default=[])
    given = command.parse_args(words)
    settings = dict(each.split("=", 1) for each in given.config)
    staged.create(given.topic, partitions=given.partitions, **settings)


def test_a_topic_that_is_deleted_and_made_again(staged: Stage, tmp_path: Path) -> None:
    """What was acknowledged before went with it; what wasn't is on the new one, not always in order."""
    topic = new_topic()
    with driver_of(kafka_conf(staged.address, topic, tmp_path)) as driver:
        driver.tell(100)
        driver.deliver()
        gone = len(driver.emitted)
        staged.delete(topic)
        driver.tell_for(1)
        with suppress(KafkaException):  # the driver may have made it
            staged.create(topic, partitions=2, message_timestamp_type="LogAppendTime")
        driver.tell_for(1)
        driver.deliver()
    copies = copies_on(staged.config(), topic)
    check_topic(driver.emitted[gone:], copies, may_have_holes=True, is_ordered=False)


@pytest.mark.long
def test_a_topic_with_more_partitions_than_before(staged: Stage, tmp_path: Path) -> None:
    """A key may come to lie in another partition; nothing is lost by that, and nothing is recorded twice."""
    topic = new_topic()
    staged.create(topic, partitions=1, message_timestamp_type="LogAppendTime")
    with driver_of(kafka_conf(staged.address, topic, tmp_path)) as driver:
        driver.tell(100)
        driver.deliver()
        staged.add_partitions(topic, 3)
        driver.tell_for(3)
        driver.deliver()
    copies = copies_on(staged.config(), topic)
    on_topic = {(copy.headers["producer"], copy.headers["sequence"]) for copy in copies if "producer" in copy.headers}
    assert {(str(each.id.producer).encode(), b"%d" % each.id.sequence) for each in driver.emitted} == on_topic


@pytest.mark.long
def test_what_the_topic_has_no_room_for_is_a_dead_letter_and_holds_up_nothing(staged: Stage, tmp_path: Path) -> None:
    topic = new_topic()
    with driver_of(kafka_conf(staged.address, topic, tmp_path)) as driver:
        driver.tell(50)
        driver.deliver()
        staged.change(topic, max_message_bytes="400")
        driver.tell(5)
        driver.deliver()
        assert driver.kafka.dead_letters
        staged.change(topic, max_message_bytes="1000000")
        driver.tell(50)
        driver.deliver()
        count = driver.kafka.dead_letters
    letters = letters_in(tmp_path / "dead-letters" / "kafka")
    assert len(letters) == count
    refused = {(each["producer"], each["sequence"]) for each in letters}
    expected = [
        each for each in driver.emitted if (str(each.id.producer).encode(), b"%d" % each.id.sequence) not in refused
    ]
    assert len(driver.emitted) - 5 <= len(expected) < len(driver.emitted)
    check_topic(expected, copies_on(staged.config(), topic), may_have_holes=True)


def letters_in(directory: Path) -> list[dict[str, bytes]]:
    """The headers of all dead letters."""
    log = LocalLog.open(directory)
    found: list[dict[str, bytes]] = []
    for partition in log.partitions():
        with log.reader(partition).tail(0) as tail:
            while batch := tail.read():
                found += [dict(each.headers) for each in batch.records]
    return found


@pytest.mark.long
def test_a_quota_makes_it_slower_and_no_more(staged: Stage, tmp_path: Path) -> None:
    topic = new_topic()
    with driver_of(kafka_conf(staged.address, topic, tmp_path)) as driver:
        driver.tell(20)
        driver.deliver()
        staged.limit_rate(3_000)
        try:
            driver.tell(150)
            driver.until(lambda report: "throttled" in report.errors, "saying that it is slowed down")
            driver.deliver()
        finally:
            staged.limit_rate(None)
    check_topic(driver.emitted, copies_on(staged.config(), topic))
