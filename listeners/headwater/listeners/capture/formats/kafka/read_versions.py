"""From where to where topics were read. Between Spark's plan and the executors the latest offset is only a word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headwater.events import Format
from headwater.events.identity import IdentityError, kafka_topic
from headwater.events.jobs import SourceSchema
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats.kafka import streams
from headwater.listeners.capture.formats.kafka.sources import Subscription, with_topics
from headwater.listeners.capture.formats.kafka.streams import UNSEEN, version_of
from headwater.listeners.capture.formats.protocol import RddSource, ReadVersion, SourceRelation
from headwater.listeners.capture.statements import FormatFact, Statement, StatementFacts

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
    return {topic for range_ in offsets.get(source.node, ()) for topic in streams.topics_in(range_)}


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
