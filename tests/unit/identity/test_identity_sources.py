"""Sources by format and options, by the table of truth."""

from __future__ import annotations

import pytest

from headwater.events.identity import (
    IdentityError,
    KafkaRead,
    Unknown,
    dataset_of_source,
    kafka_read,
    kafka_topic,
    kafka_write,
)
from tests.kit.identity_rows import SITE, Row, check, names, options, rows

ROWS = rows("sources")


@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
def test_source(row: Row) -> None:
    source_format, given, *seen = row.given

    def identify() -> Unknown | str:
        shown = seen[0].split(", ") if seen else None
        found = dataset_of_source(source_format, options(given), SITE, seen=shown)
        assert (found.unknown is None) == bool(found.datasets)
        return found.unknown or " + ".join(f"{dataset.namespace} | {dataset.name}" for dataset in found.datasets)

    check(row, identify)


def test_how_a_source_was_chosen_is_an_attribute() -> None:
    kafka = {"kafka.bootstrap.servers": "b", "subscribePattern": "t.*", "kafka.group.id": "g"}
    found = dataset_of_source("kafka", kafka, SITE, seen=["t1"])
    assert dict(found.attributes) == {"subscribePattern": "t.*", "group.id": "g"}
    files = dataset_of_source("csv", {"path": "/d/*.csv"}, SITE)
    assert dict(files.attributes) == {"pattern": "/d/*.csv"}
    table = dataset_of_source("jdbc", {"url": "jdbc:postgresql://h/db", "dbtable": "t"}, SITE)
    assert dict(table.attributes) == {"assumed": "schema public"}


def test_sinks() -> None:
    kafka = {"kafka.bootstrap.servers": "b", "topic": "t"}
    assert [d.name for d in dataset_of_source("kafka", kafka, SITE, write=True).datasets] == ["t"]
    rows_say = dataset_of_source("kafka", {"kafka.bootstrap.servers": "b"}, SITE, write=True)
    assert rows_say.unknown is not None
    braces = dataset_of_source("parquet", {"path": "/d/{x}"}, SITE, write=True)
    assert [d.name for d in braces.datasets] == ["/d/{x}"]


# Clusters and topics by the table of truth; what a read chooses by, and what a sink leaves to its rows.


KAFKA_ROWS = rows("kafka")
SERVERS = {"kafka.bootstrap.servers": "b1:9092"}


@pytest.mark.parametrize("row", KAFKA_ROWS, ids=names(KAFKA_ROWS))
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
