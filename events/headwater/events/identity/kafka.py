"""Kafka: one dataset per topic that is really read. Which cluster is known by its bootstrap list."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from headwater.events.identity.environment import Environment
from headwater.events.identity.hosts import endpoint
from headwater.events.identity.text import IdentityError, Unknown, dataset, lower_keys, required, shown
from headwater.events.names import DatasetId

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}", re.ASCII)
_LISTENER = re.compile(r"^[A-Za-z0-9_+.-]*://")
_DEFAULT_PORT: Final = 9092
_STRATEGIES: Final = ("subscribe", "subscribepattern", "assign")


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRead:
    """The topics of a read. How they were chosen, and for whom, are attributes: no part of what is read."""

    datasets: tuple[DatasetId, ...]
    pattern: str | None = None
    group_id: str | None = None
    partitions: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Of `assign`: the partitions per topic; empty: all."""
    unknown: Unknown | None = None
    """Why no dataset is known, where none is."""


def kafka_namespace(bootstrap_servers: str, environment: Environment) -> str:
    """`kafka://host:port` of the first of the sorted list, or `kafka://logical`."""
    servers = required(bootstrap_servers, "option kafka.bootstrap.servers").split(",")
    places = [endpoint(_LISTENER.sub("", server.strip()), _DEFAULT_PORT) for server in servers if server.strip()]
    return f"kafka://{environment.authority(places)}"


def kafka_topic(bootstrap_servers: str, topic: str, environment: Environment) -> DatasetId:
    name = required(topic, "the topic")
    if not _TOPIC.fullmatch(name) or name in {".", ".."}:
        msg = f"{shown(name)} is no topic's name (letters, digits, dot, underscore, hyphen); check the options"
        raise IdentityError(msg)
    return dataset(kafka_namespace(bootstrap_servers, environment), name)


def kafka_read(
    options: Mapping[str, str], environment: Environment, topics_read: Iterable[str] | None = None
) -> KafkaRead:
    """What `subscribe`, `subscribePattern` or `assign` read.

    `topics_read` are the topics that offsets or progress showed; for a pattern there is no other way to know.
    """
    settings = lower_keys(options)
    chosen = [key for key in _STRATEGIES if settings.get(key)]
    if len(chosen) != 1:
        msg = "a Kafka read needs exactly one of the options subscribe, subscribePattern and assign"
        raise IdentityError(msg)
    partitions = _parse_assignment(settings["assign"]) if chosen == ["assign"] else ()
    pattern = settings["subscribepattern"] if chosen == ["subscribepattern"] else None
    topics = None if topics_read is None else list(topics_read)
    if topics is None and pattern is None:
        topics = [topic for topic, _ in partitions] or _split_topics(settings["subscribe"])
    servers = settings.get("kafka.bootstrap.servers", "")
    namespace_only = kafka_namespace(servers, environment)
    return KafkaRead(
        datasets=tuple(kafka_topic(servers, topic, environment) for topic in sorted(set(topics or ()))),
        pattern=pattern,
        group_id=settings.get("kafka.group.id"),
        partitions=partitions,
        unknown=_pattern_only(namespace_only) if topics is None else None,
    )


def kafka_write(
    options: Mapping[str, str], environment: Environment, topics_written: Iterable[str] | None = None
) -> tuple[DatasetId, ...] | Unknown:
    """Where a sink writes: option `topic`; without it each row says where, which only `topics_written` can tell."""
    settings = lower_keys(options)
    servers = settings.get("kafka.bootstrap.servers", "")
    topics = [settings["topic"]] if settings.get("topic") else sorted(set(topics_written or ()))
    if not topics:
        kafka_namespace(servers, environment)
        return Unknown(reason="the rows' own column 'topic' says where they go; option 'topic' isn't set")
    return tuple(kafka_topic(servers, topic, environment) for topic in topics)


def _pattern_only(namespace: str) -> Unknown:
    return Unknown(reason=f"subscribePattern at {namespace}: the topics really read show only in the offsets")


def _split_topics(text: str) -> list[str]:
    topics = [topic.strip() for topic in text.split(",") if topic.strip()]
    if not topics:
        msg = "option subscribe lists no topic; give topics with commas between them"
        raise IdentityError(msg)
    return topics


def _parse_assignment(text: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """`{"topic": [0, 1]}`."""
    try:
        given: object = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict) or not given or not all(_are_partitions(value) for value in given.values()):
        msg = 'option assign isn\'t of the form {"topic": [0, 1]}'
        raise IdentityError(msg)
    return tuple((str(topic), tuple(sorted(set(numbers)))) for topic, numbers in sorted(given.items()))


def _are_partitions(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(type(number) is int and number >= 0 for number in value)
