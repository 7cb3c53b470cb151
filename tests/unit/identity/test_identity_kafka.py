"""Clusters and topics by the table of truth; what a read chooses by, and what a sink leaves to its rows."""

from __future__ import annotations

import pytest

from headwater.events.identity import IdentityError, KafkaRead, Unknown, kafka_read, kafka_topic, kafka_write
from tests.kit.identity_rows import SITE, Row, check, names, rows

ROWS = rows("kafka")
SERVERS = {"kafka.bootstrap.servers": "b1:9092"}


@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
def test_topic(row: Row) -> None:
    check(row, lambda: kafka_topic(row.given[0], row.given[1], SITE))


def test_pattern_and_group_are_attributes_of_a_read() -> None:
    options = {**SERVERS, "subscribePattern": "t.*", "kafka.group.id": "g"}
    t1 = kafka_topic("b1", "t1", SITE)
    assert kafka_read(options, SITE, ["t1"]) == KafkaRead(datasets=(t1,), pattern="t.*", group_id="g")
    other_group = kafka_read({**options, "kafka.group.id": "h"}, SITE, ["t1"])
    assert other_group.datasets == (t1,)


def test_a_pattern_that_read_nothing_is_known_to_have_read_nothing() -> None:
    assert kafka_read({**SERVERS, "subscribePattern": "t.*"}, SITE, []).unknown is None


def test_partitions_of_assign_are_kept() -> None:
    read = kafka_read({**SERVERS, "assign": '{"b": [2, 0, 2], "a": [1]}'}, SITE)
    assert read.partitions == (("a", (1,)), ("b", (0, 2)))
    assert [dataset.name for dataset in read.datasets] == ["a", "b"]


def test_a_deeply_nested_assign_is_an_error_of_its_own_kind() -> None:
    with pytest.raises(IdentityError, match="assign"):
        kafka_read({**SERVERS, "assign": "[" * 100_000}, SITE)


def test_a_sink_names_its_topic_or_leaves_it_to_the_rows() -> None:
    t = kafka_topic("b1", "t", SITE)
    assert kafka_write({**SERVERS, "topic": "t"}, SITE) == (t,)
    assert kafka_write({**SERVERS, "Topic": "t"}, SITE, ["else"]) == (t,)
    assert kafka_write(SERVERS, SITE, ["t"]) == (t,)
    assert isinstance(kafka_write(SERVERS, SITE), Unknown)
    with pytest.raises(IdentityError):
        kafka_write({}, SITE)
