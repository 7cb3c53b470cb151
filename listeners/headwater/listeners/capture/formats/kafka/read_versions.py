"""From where to where topics were read. Between Spark's plan and the executors the latest offset is only a word.

A version is a text: for each partition the offset behind the last record that was read, as `{"0":42,"1":17}`. `since`
is the version before. A topic that was read from its beginning, wherever that was, was read as a state. What a stream
read, the offsets of its checkpoint say: `{"topic":{"0":4,"1":7}}`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from headwater.events import Format
from headwater.events.identity import IdentityError, kafka_topic
from headwater.events.jobs import RangeStart, SourceSchema, StartReason
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.kafka.sources import Subscription, with_topics
from headwater.listeners.capture.formats.protocol import RddSource, ReadVersion, SourceRelation, StreamStart
from headwater.listeners.capture.formats.relations import stream_options
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import FormatFact, OffsetRange, Statement, StatementFacts

_START_WORDS: Final = {"latest": StartReason.LATEST, "earliest": StartReason.EARLIEST}
_START_OPTIONS: Final = ("startingtimestamp", "startingoffsetsbytimestamp")
"""Both go before offsets."""


def versions_of_batch(source: SourceRelation, offsets: OffsetRange) -> tuple[ReadVersion, ...]:
    """None where this topic gave nothing, whatever the others of the subscription did."""
    topic: str = source.hints.get("topic", "")
    ends, starts = _parse_offsets(offsets.end), _parse_offsets(offsets.start)
    if ends is None or (offsets.start is not None and starts is None):
        return (ReadVersion(changes=True, why="the offsets of this stream can't be read"),)
    if topic not in ends:
        return ()
    start = (starts or {}).get(topic)
    if start == ends[topic]:
        return ()
    since = None if start is None else RangeStart(version=text_of(start))
    return (ReadVersion(version=text_of(ends[topic]), since=since, changes=True),)


def topics_in(offsets: OffsetRange) -> tuple[str, ...]:
    return tuple(_parse_offsets(offsets.end) or ())


def start_of(source: SourceRelation, node: PlanNode, offsets: OffsetRange) -> StreamStart:
    options = stream_options(node)
    asked = any(options.get(option) for option in _START_OPTIONS)
    word = options.get("startingoffsets", "latest").strip().lower()
    reason = StartReason.REQUESTED if asked else _START_WORDS.get(word, StartReason.REQUESTED)
    start = (_parse_offsets(offsets.start) or {}).get(source.hints.get("topic", ""))
    return StreamStart(version=None if start is None else text_of(start), reason=reason)


def _parse_offsets(text: str | None) -> Mapping[str, Mapping[str, int]] | None:
    """None where the text isn't there, or isn't what Spark writes."""
    try:
        by_topic: Any = json.loads(text or "")
        return {topic: {str(int(p)): int(o) for p, o in partitions.items()} for topic, partitions in by_topic.items()}
    except (AttributeError, TypeError, ValueError):
        return None


Ranges = Mapping[str, Sequence[int]]
"""By partition: from which offset, and up to which; what is below zero was found by the executors."""
UNSEEN: Final = "up to which offset it was read isn't known: the latest is found on the executors while they read"


def version_of(ranges: Ranges) -> ReadVersion:
    """What a batch read of one topic."""
    starts = {partition: bounds[0] for partition, bounds in ranges.items()}
    ends = {partition: bounds[1] for partition, bounds in ranges.items()}
    is_known = bool(ends) and min(ends.values()) >= 0
    since = RangeStart(version=text_of(starts)) if starts and min(starts.values()) >= 0 else None
    return ReadVersion(
        version=text_of(ends) if is_known else None,
        since=since,
        changes=since is not None,
        why=None if is_known else UNSEEN,
    )


def text_of(offsets: Mapping[str, int]) -> str:
    """By the number of the partition."""
    ordered = sorted(offsets.items(), key=lambda partition: int(partition[0]))
    return json.dumps(dict(ordered), separators=(",", ":"))


_FORMAT: Final = "kafka"
_NOT_SHOWN: Final = "from where to where it was read isn't shown by a command that reads its query in a plan of its own"


def versions_of(source: SourceRelation, facts: StatementFacts) -> tuple[ReadVersion, ...]:
    """More than one where it was read more than once; none where the optimizer saw that it needn't be read."""
    topic = source.hints.get("topic")
    leaves = _read_facts(source, facts)
    if topic is None:
        return (ReadVersion(why=UNSEEN),) if leaves else ()
    return tuple(dict.fromkeys(_version(leaf, topic) for leaf in leaves))


def _version(fact: Mapping[str, Any], topic: str) -> ReadVersion:
    ranges = fact.get("ranges", {}).get(topic)
    if ranges is None:
        return ReadVersion(why=_NOT_SHOWN if fact.get("asked") else UNSEEN)
    found = version_of(ranges)
    return found if found.why is None or not fact.get("asked") else ReadVersion(since=found.since, why=_NOT_SHOWN)


def sources_of_rdd(fact: FormatFact, context: CaptureContext) -> tuple[RddSource, ...]:
    """The topics that an RDD of Kafka's reads. Its options aren't there: they are the plan's, which is gone."""
    try:
        topics = {
            name: kafka_topic(fact["servers"], name, context.environment) for name in sorted(fact.get("ranges", ()))
        }
    except IdentityError:
        return ()
    return tuple(
        RddSource(SourceSchema(dataset=dataset, format=Format.KAFKA), version_of(fact["ranges"][name]))
        for name, dataset in topics.items()
    )


def topics_read(source: SourceRelation, statement: Statement) -> tuple[SourceRelation, ...]:
    """The topics that a pattern meant this time."""
    if "topic" in source.hints:
        return ()
    names = _topics_in_stream(source, statement) or {
        t for f in _read_facts(source, statement.facts) for t in f.get("ranges", ())
    }
    subscription, environment = source.hints["subscription"], source.hints["environment"]
    try:
        found = [kafka_topic(subscription.servers, name, environment) for name in sorted(names)]
    except IdentityError:
        return ()
    return with_topics(source, found)


def _topics_in_stream(source: SourceRelation, statement: Statement) -> set[str]:
    offsets = (statement.stream.offsets if statement.stream is not None else None) or {}
    return {topic for range_ in offsets.get(source.node, ()) for topic in topics_in(range_)}


def _read_facts(source: SourceRelation, facts: StatementFacts) -> Sequence[Mapping[str, Any]]:
    """Leaves of nested executions, which give their columns other ids, before those of a command around them; and what
    was executed before what was only asked for. An exchange that is used again is executed once, for all its leaves."""
    subscription: Subscription | None = source.hints["subscription"]

    def same(each: Mapping[str, Any]) -> bool:
        return each.get("format") == _FORMAT and subscription == _subscription_of(each)

    own = [read for read in facts.reads if same(read)]
    nested = [read for read in facts.nested_reads if same(read)]
    for found in (_executed_leaves(nested), _executed_leaves(own), own):
        if found:
            attributes = set(source.hints["attributes"])
            return [read for read in found if attributes.intersection(read.get("attributes", ()))] or found
    return ()


def _executed_leaves(leaves: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [leaf for leaf in leaves if not leaf.get("asked")]


def _subscription_of(fact: Mapping[str, Any]) -> Subscription:
    return Subscription(fact.get("servers", ""), fact.get("strategy", ""), fact.get("topics", ""))
