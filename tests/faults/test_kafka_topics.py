"""A topic that isn't there, goes, comes again, or takes less than it did."""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from tests.faults.kafka_conf import kafka_conf
from tests.faults.kafka_driver import driver_of
from tests.faults.kafka_stage import PATIENCE, Stage, new_topic
from tests.faults.topic_check import check_topic
from tests.faults.topic_copies import copies_on

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def settings_of(staged: Stage, topic: str) -> dict[str, str]:
    """As the broker tells them."""
    admin: AdminClient = staged.admin()
    wanted = ConfigResource(ResourceType.TOPIC, topic)
    told = admin.describe_configs([wanted], request_timeout=PATIENCE)[wanted].result(PATIENCE)
    return {name: entry.value for name, entry in told.items()}


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
    check_topic(driver.told, copies)
    assert all(copy.is_broker_time for copy in copies)
    assert partitions_of(staged, topic) == 4
    settings = settings_of(staged, topic)
    assert settings["message.timestamp.type"] == "LogAppendTime"
    assert settings["retention.ms"] == str(3 * 24 * 3600 * 1000)
    assert settings["max.message.bytes"] == "1500000"


def test_where_it_must_not_be_made_the_command_is_told_and_works(staged: Stage, tmp_path: Path) -> None:
    topic = new_topic()
    with driver_of(kafka_conf(staged.address, topic, tmp_path, topic_create="false")) as driver:
        driver.tell(100)
        driver.until_it_says("kafka-topics.sh")
        assert not staged.has(topic)
        told = re.search(r"kafka-topics\.sh (.*)", driver.kafka.last_error)
        assert told is not None
        _do_as_told(staged, shlex.split(told[1]))
        driver.deliver()
    check_topic(driver.told, copies_on(staged.config(), topic))
    assert settings_of(staged, topic)["message.timestamp.type"] == "LogAppendTime"


def _do_as_told(staged: Stage, words: list[str]) -> None:
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
    """What was acknowledged before went with it; what wasn't is on the new one."""
    topic = new_topic()
    with driver_of(kafka_conf(staged.address, topic, tmp_path)) as driver:
        driver.tell(100)
        driver.deliver()
        gone = len(driver.told)
        staged.delete(topic)
        driver.tell_for(1)
        if not staged.has(topic):
            staged.create(topic, partitions=2, message_timestamp_type="LogAppendTime")
        driver.tell_for(1)
        driver.deliver()
    copies = copies_on(staged.config(), topic)
    check_topic(driver.told[gone:], copies, may_have_holes=True, was_made_anew=True)


def test_a_topic_with_more_partitions_than_before(staged: Stage, tmp_path: Path) -> None:
    """A key may come to lie in another partition; nothing is lost by that, and nothing is told twice."""
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
    assert {(str(each.id.producer).encode(), b"%d" % each.id.sequence) for each in driver.told} == on_topic


def test_what_the_topic_has_no_room_for_goes_when_it_has(staged: Stage, tmp_path: Path) -> None:
    topic = new_topic()
    with driver_of(kafka_conf(staged.address, topic, tmp_path)) as driver:
        driver.tell(50)
        driver.deliver()
        staged.change(topic, max_message_bytes="400")
        driver.tell_for(2)
        driver.until_it_says("max.message.bytes")
        assert driver.kafka.lag
        staged.change(topic, max_message_bytes="1000000")
        driver.tell(50)
        driver.deliver()
    check_topic(driver.told, copies_on(staged.config(), topic))


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
    check_topic(driver.told, copies_on(staged.config(), topic))
