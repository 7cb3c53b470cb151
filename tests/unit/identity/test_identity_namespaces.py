"""Logical names for many hosts, and every way to write them wrongly."""

from __future__ import annotations

import pytest

from headwater.errors import ConfigurationError
from headwater.events.identity import (
    Environment,
    IdentityError,
    Namespaces,
    dataset_of_path,
    jdbc_table,
    kafka_namespace,
)
from headwater.events.identity.hosts import endpoint

LISTS = {
    "Kafka-East": "b1.east, B2.East:9092, k-*.east, /n[0-9]{1,2}\\.east/, [2001:db8::1]:9092, host?.west:9093",
    "files": "node-*.cluster",
}


@pytest.mark.parametrize(
    ("host", "logical"),
    [
        ("b1.east:9092", "kafka-east"),
        ("b1.east:1", "kafka-east"),
        ("b2.east:9092", "kafka-east"),
        ("b2.east:9093", None),
        ("k-17.east", "kafka-east"),
        ("k-.east", "kafka-east"),
        ("xk-1.east", None),
        ("k-1.east.example", None),
        ("n7.east:9092", "kafka-east"),
        ("n700.east:9092", None),
        ("[2001:db8:0::1]:9092", "kafka-east"),
        ("[2001:db8::1]:9093", None),
        ("host1.west:9093", "kafka-east"),
        ("host10.west:9093", None),
        ("host1.west:9092", None),
        ("node-3.cluster", "files"),
        ("kafka-east", "kafka-east"),
        ("elsewhere", None),
    ],
)
def test_a_host_and_its_logical_name(host: str, logical: str | None) -> None:
    assert Namespaces.parse(LISTS).logical(endpoint(host)) == logical


@pytest.mark.parametrize(
    ("lists", "words"),
    [
        ({"a": ""}, "empty"),
        ({"a": "  "}, "empty"),
        ({"a": "h1,,h2"}, "empty entry"),
        ({"a": "h1,"}, "empty entry"),
        ({"a": ",h1"}, "empty entry"),
        ({"a": "/[/"}, "valid regular expression"),
        ({"a": "/h"}, "close it"),
        ({"a": "//"}, "close it"),
        ({"a": "/x/:9092"}, "one comma"),
        ({"a": "h 1"}, "neither host"),
        ({"a": "h:x"}, "neither host"),
        ({"a": "u:p@h"}, "neither host"),
        ({"a b": "h"}, "logical name"),
        ({"a/b": "h"}, "logical name"),
        ({"": "h"}, "logical name"),
        ({"A": "h1", "a": "h2"}, "twice"),
        ({"a": "h1, h2", "b": "h2"}, "claim the same"),
        ({"a": "H1", "b": "h1"}, "claim the same"),
        ({"a": "h1:1", "b": "h1"}, "claim the same"),
        ({"a": "h*", "b": "h1"}, "claim the same"),
        ({"a": "h*x", "b": "*y*"}, "claim the same"),
        ({"a": "h?", "b": "?1"}, "claim the same"),
        ({"a": "*", "b": "h"}, "claim the same"),
        ({"a": "/h[0-9]/", "b": "h1"}, "claim the same"),
        ({"a": "/h:1/", "b": "h:1"}, "claim the same"),
        ({"a": "b*", "beta": "h"}, "another namespace's name"),
    ],
)
def test_a_wrong_list_is_reported_with_its_key(lists: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^namespaces\.") as caught:
        Namespaces.parse(lists)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "lists",
    [
        {"a": "h1:1", "b": "h1:2"},
        {"a": "h1", "b": "h2"},
        {"a": "x*", "b": "y*"},
        {"a": "h?", "b": "h??"},
        {"a": "*a", "b": "*b"},
        {"x": "a*:1", "y": "*a:2"},
        {"a": "a, h1"},
        {"a": "/h[0-9]/", "b": "/h[a-z]/"},
        {},
    ],
)
def test_lists_that_exclude_each_other_stand(lists: dict[str, str]) -> None:
    assert Namespaces.parse(lists) == Namespaces.parse(dict(lists))


def test_an_overlap_that_only_a_host_shows_is_reported_then() -> None:
    both = Namespaces.parse({"a": "/h.*/", "b": "/.*1/"})
    assert both.logical(endpoint("h2")) == "a"
    with pytest.raises(IdentityError, match="a and b"):
        both.logical(endpoint("h1"))


def test_one_list_of_hosts_is_in_one_namespace() -> None:
    environment = Environment(host="h", namespaces=Namespaces.parse({"a": "h1", "b": "h2"}))
    with pytest.raises(IdentityError, match="a and b"):
        kafka_namespace("h1,h2", environment)


def test_one_logical_name_serves_every_kind_of_server() -> None:
    environment = Environment(
        host="node-1.cluster", namespaces=Namespaces.parse({"main": "m1, m2", "nfs": "node-*.cluster"})
    )
    assert kafka_namespace("m2:9092,m1:9092", environment) == "kafka://main"
    assert dataset_of_path("hdfs://m2:8020/a", environment).namespace == "hdfs://main"
    assert "mysql://main" in str(jdbc_table("jdbc:mysql://m1/db", "t", environment))
    assert dataset_of_path("/shared/a", environment).namespace == "file://nfs"
    assert kafka_namespace("localhost", environment) == "kafka://nfs"


def test_only_its_own_keys_are_read_from_a_configuration() -> None:
    conf = {
        "spark.headwater.namespaces.a": "h1",
        "spark.headwater.kafka.bootstrap.servers": "x y",
        "spark.app.name": "n",
    }
    assert Namespaces.from_conf(conf) == Namespaces.parse({"a": "h1"})
