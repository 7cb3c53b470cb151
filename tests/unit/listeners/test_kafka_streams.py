"""What a micro-batch's plan and offsets tell of Kafka's topics, as Spark writes them."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.events import DatasetId, Format
from headwater.events.identity import Environment
from headwater.events.jobs import RangeStart, StartReason
from headwater.events.redaction import Redactor
from headwater.listeners.capture.batch.write_lineage import lineage_of_write
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats import installed
from headwater.listeners.capture.formats.kafka import KafkaFormat
from headwater.listeners.capture.formats.kafka.read_versions import version_of
from headwater.listeners.capture.formats.protocol import ReadVersion, SourceRelation, StatementWrites, StreamStart
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import OffsetRange, StatementFacts

SERVERS = "broker-1:9092"


def scene() -> CaptureContext:
    return CaptureContext(Environment(host="driver-1"), {}, Redactor(), installed())


def plan(read: dict[str, str], write: dict[str, str], topics: list[dict[str, Any]]) -> Plan:
    """A stream's relation, and the write of its micro-batch."""
    given = {"table": {"kafka": {}}, "extraOptions": {"kafka.bootstrap.servers": SERVERS, **read}}
    relation = {"c": "StreamingRelationV2", "in": [], "out": [0, 1], "args": given}
    target = {"table": "KafkaTable", "kafka": {}}
    options = {"kafka.bootstrap.servers": SERVERS, "checkpointLocation": "/c", **write}
    args = {"table": target, "query": {"p": 0}, "writeOptions": options, "kafka": {"topics": topics}}
    command = {"c": "WriteToMicroBatchDataSource", "in": [0], "out": [], "args": args}
    return Plan.parse(
        {
            "root": 1,
            "types": ['"binary"'],
            "attributes": [["key", 0, True], ["value", 0, True]],
            "expressions": [],
            "nodes": [relation, command],
        }
    )


def topic(name: str) -> DatasetId:
    return DatasetId(namespace="kafka://broker-1:9092", name=name)


def reading(**options: str) -> tuple[SourceRelation, PlanNode]:
    given = plan(options, {}, [])
    found = KafkaFormat().source(given.nodes[0], given, scene())
    assert found is not None
    return found, given.nodes[0]


def took(start: str | None, end: str, name: str = "a") -> tuple[ReadVersion, ...]:
    described, node = reading(subscribe="a,b")
    topics = {each.hints["topic"]: each for each in (described, *described.also)}
    return KafkaFormat().versions_of_batch(topics[name], node, OffsetRange(start, end), StatementFacts())


def test_a_micro_batch_reads_and_writes_topics() -> None:
    secret = {"kafka.ssl.key.password": "x"}
    given = plan({"subscribe": "b,a", "startingOffsets": "earliest", **secret}, {"topic": "c", **secret}, [])
    parts = KafkaFormat().sinks(given.top, given, scene())
    shape = lineage_of_write(StatementWrites(parts), given, scene())
    assert [source.dataset for source in shape.sources] == [topic("a"), topic("b")]
    assert dict(shape.sources[0].options) == {"subscribe": "b,a", "startingoffsets": "earliest"}
    (part,) = parts
    assert (part.target.sink.dataset, part.target.sink.format) == (topic("c"), Format.KAFKA)
    assert dict(part.target.sink.options) == {"topic": "c"}
    assert {(edge.input, edge.source, edge.target) for edge in shape.columns} == {
        (number, (column,), (column,)) for number in (0, 1) for column in ("key", "value")
    }


def test_a_micro_batch_writes_the_topics_that_its_rows_name() -> None:
    given = plan({"subscribe": "a"}, {}, [{"topic": "c", "branches": []}])
    assert [part.target.sink.dataset for part in KafkaFormat().sinks(given.top, given, scene())] == [topic("c")]


def test_the_ends_of_a_micro_batch_are_versions_of_its_topics() -> None:
    start, end = '{"a":{"0":4,"1":7},"b":{"0":0}}', '{"a":{"10":2,"0":9,"1":7},"b":{"0":3}}'
    (a,), (b,) = took(start, end), took(start, end, "b")
    assert a == ReadVersion(version='{"0":9,"1":7,"10":2}', since=RangeStart(version='{"0":4,"1":7}'), changes=True)
    assert b == ReadVersion(version='{"0":3}', since=RangeStart(version='{"0":0}'), changes=True)


def test_the_first_micro_batch_may_have_no_start() -> None:
    assert took(None, '{"a":{"0":9}}') == (ReadVersion(version='{"0":9}', changes=True),)


def test_a_topic_that_is_new_in_a_micro_batch_has_no_start() -> None:
    assert took('{"a":{"0":4}}', '{"a":{"0":4},"b":{"0":1}}', "b") == (ReadVersion(version='{"0":1}', changes=True),)


@pytest.mark.parametrize("end", ['{"a":{"0":4},"b":{"0":1}}', '{"b":{"0":1}}'])
def test_a_topic_that_gave_nothing_wasnt_read(end: str) -> None:
    assert took('{"a":{"0":4},"b":{"0":0}}', end) == ()


@pytest.mark.parametrize(("start", "end"), [("12", '{"a":{"0":4}}'), ('{"a":{"0":4}}', '{"a":[1]}')])
def test_what_isnt_an_offset_of_kafkas_isnt_known(start: str, end: str) -> None:
    (found,) = took(start, end)
    assert (found.version, found.since) == (None, None)
    assert found.why


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, StartReason.LATEST),
        ({"startingOffsets": "earliest"}, StartReason.EARLIEST),
        ({"startingOffsets": '{"a":{"0":4}}'}, StartReason.REQUESTED),
        ({"startingOffsets": "earliest", "startingTimestamp": "1"}, StartReason.REQUESTED),
    ],
)
def test_where_a_query_begins(options: dict[str, str], reason: StartReason) -> None:
    described, node = reading(subscribe="a", **options)
    start = OffsetRange('{"a":{"0":4}}', None)
    assert KafkaFormat().start_of_stream(described, node, start) == StreamStart(version='{"0":4}', reason=reason)


@pytest.mark.parametrize(
    ("ranges", "since", "version"),
    [
        ({"0": [1, 3], "1": [0, 2]}, '{"0":1,"1":0}', '{"0":3,"1":2}'),
        ({"0": [-2, 3]}, None, '{"0":3}'),
        ({"0": [1, -1], "1": [0, 2]}, '{"0":1,"1":0}', None),
        ({}, None, None),
    ],
)
def test_what_isnt_a_number_isnt_known(ranges: dict[str, list[int]], since: str | None, version: str | None) -> None:
    found = version_of(ranges)
    assert (found.since.version if found.since else None, found.version) == (since, version)
    assert (found.why is None) == (version is not None)
