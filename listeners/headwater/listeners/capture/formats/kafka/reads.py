"""From where to where topics were read. Between Spark's plan and the executors the latest offset is only a word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headwater.events.identity import IdentityError, kafka_topic
from headwater.listeners.capture.formats.kafka import streams
from headwater.listeners.capture.formats.kafka.offsets import UNSEEN, version_of
from headwater.listeners.capture.formats.kafka.sources import Subscription, topics_as
from headwater.listeners.capture.formats.protocol import Described, Version
from headwater.listeners.capture.statements import Facts, Statement

_FORMAT: Final = "kafka"
_NOT_SHOWN: Final = "from where to where it was read isn't shown by a command that reads its query in a plan of its own"


def versions_of(source: Described, facts: Facts) -> tuple[Version, ...]:
    """More than one where it was read more than once; none where the optimizer saw that it needn't be read."""
    topic = source.hints.get("topic")
    told = _told(source, facts)
    if topic is None:
        return (Version(why=UNSEEN),) if told else ()
    return tuple(dict.fromkeys(_version(each, topic) for each in told))


def _version(fact: Mapping[str, Any], topic: str) -> Version:
    ranges = fact.get("ranges", {}).get(topic)
    if ranges is None:
        return Version(why=_NOT_SHOWN if fact.get("asked") else UNSEEN)
    found = version_of(ranges)
    return found if found.why is None or not fact.get("asked") else Version(since=found.since, why=_NOT_SHOWN)


def topics_of(source: Described, statement: Statement) -> tuple[Described, ...]:
    """The topics that a pattern meant this time."""
    if "topic" in source.hints:
        return ()
    names = _in_stream(source, statement) or {t for f in _told(source, statement.facts) for t in f.get("ranges", ())}
    subscription, site = source.hints["subscription"], source.hints["site"]
    try:
        found = [kafka_topic(subscription.servers, name, site) for name in sorted(names)]
    except IdentityError:
        return ()
    return topics_as(source, found)


def _in_stream(source: Described, statement: Statement) -> set[str]:
    took = (statement.stream.took if statement.stream is not None else None) or {}
    return {topic for each in took.get(source.node, ()) for topic in streams.topics_in(each)}


def _told(source: Described, facts: Facts) -> Sequence[Mapping[str, Any]]:
    """Leaves of nested executions, which give their columns other ids, before those of a command around them; and what
    was executed before what was only asked for. An exchange that is used again is executed once, for all its leaves."""
    subscription: Subscription | None = source.hints["subscription"]

    def same(each: Mapping[str, Any]) -> bool:
        return each.get("format") == _FORMAT and subscription == _subscription(each)

    own = [each for each in facts.reads if same(each)]
    nested = [each for each in facts.nested_reads if same(each)]
    for found in (_executed(nested), _executed(own), own):
        if found:
            attributes = set(source.hints["attributes"])
            return [each for each in found if attributes.intersection(each.get("attributes", ()))] or found
    return ()


def _executed(told: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [each for each in told if not each.get("asked")]


def _subscription(fact: Mapping[str, Any]) -> Subscription:
    return Subscription(fact.get("servers", ""), fact.get("strategy", ""), fact.get("topics", ""))
