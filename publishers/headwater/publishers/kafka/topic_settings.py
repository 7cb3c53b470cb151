"""What is doubtful in a topic that there is, each thing with the command that changes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from headwater.publishers.kafka.cluster import Topic
from headwater.publishers.kafka.config import KafkaConfig
from headwater.spi import Finding

_STEP: Final = "settings"
_DAY_MS: Final = 86_400_000
_LARGEST_EVENT: Final = 300_000
"""An event is cut above 256 KiB; its headers and the batch around it come on top."""
_USUAL: Final = 1_048_588


def look_at_settings(config: KafkaConfig, topic: Topic) -> Iterator[Finding]:
    if topic.settings is None:
        words = f"the settings of {topic.name} may not be seen by this user, so nothing is known of them"
        yield Finding.doubtful(_STEP, words, _acl(config, topic, "DescribeConfigs"))
        return
    doubts = [*_times(config, topic), *_sizes(config, topic, topic.settings), *_replicas(config, topic, topic.settings)]
    yield from doubts
    if not doubts:
        yield Finding.fine(_STEP, f"{', '.join(_words(topic, topic.settings))}")


def _words(topic: Topic, settings: Mapping[str, str]) -> Iterator[str]:
    yield "times are the brokers'"
    yield f"events are kept {_kept(settings)}"
    yield f"{topic.replicas} replicas, of which {settings.get('min.insync.replicas', '1')} have to have an event"
    yield f"batches of up to {settings.get('max.message.bytes', _USUAL)} bytes"


def _times(config: KafkaConfig, topic: Topic) -> Iterator[Finding]:
    settings = topic.settings or {}
    kind = settings.get("message.timestamp.type", "CreateTime")
    if kind != "LogAppendTime":
        words = f"message.timestamp.type is {kind}: a driver whose clock is wrong isn't found out"
        yield Finding.doubtful(_STEP, words, _change(config, topic, "message.timestamp.type=LogAppendTime"))
    if "compact" in settings.get("cleanup.policy", "delete"):
        words = "cleanup.policy is compact: of each job and each dataset only the last event would stay"
        yield Finding.wrong(_STEP, words, _change(config, topic, "cleanup.policy=delete"))


def _sizes(config: KafkaConfig, topic: Topic, settings: Mapping[str, str]) -> Iterator[Finding]:
    kept, room = _number(settings, "retention.ms", -1), _number(settings, "retention.bytes", -1)
    if 0 <= kept < _DAY_MS:
        words = f"events are kept {_kept(settings)}: who consumes them and is away for longer misses some"
        wanted = f"retention.ms={config.topic_settings()['retention.ms']}"
        yield Finding.doubtful(_STEP, words, _change(config, topic, wanted))
    if room >= 0:
        words = f"retention.bytes is {room}: above that events of a partition go before their time"
        yield Finding.doubtful(_STEP, words, _change(config, topic, "retention.bytes=-1"))
    longest = _number(settings, "max.message.bytes", _USUAL)
    if longest < _LARGEST_EVENT:
        words = f"max.message.bytes is {longest}: an event can have 256 KiB, and would wait until that is more"
        yield Finding.wrong(_STEP, words, _change(config, topic, f"max.message.bytes={_USUAL}"))
    if topic.partitions == 1:
        words = "there is one partition, so one consumer at a time; more can be had while nobody writes"
        command = f"kafka-topics.sh --bootstrap-server {config.bootstrap_servers} --alter --topic {topic.name}"
        yield Finding.doubtful(_STEP, words, f"{command} --partitions {config.topic_partitions}")


def _replicas(config: KafkaConfig, topic: Topic, settings: Mapping[str, str]) -> Iterator[Finding]:
    insync, replicas = _number(settings, "min.insync.replicas", 1), topic.replicas
    if insync > replicas:
        # Newer brokers ask for no more than there are (Partition.effectiveMinIsr).
        words = f"min.insync.replicas is {insync}, and there are {replicas} replicas: older brokers take nothing then"
        yield Finding.doubtful(_STEP, words, _change(config, topic, f"min.insync.replicas={max(1, replicas - 1)}"))
    if replicas == 1:
        words = "there is one replica: events are lost with the disk of one broker"
        advice = "with three brokers or more: kafka-reassign-partitions.sh, to three replicas"
        yield Finding.doubtful(_STEP, words, advice)
    elif insync == replicas:
        words = f"all {replicas} replicas have to have an event: while one broker is away nothing can be written"
        yield Finding.doubtful(_STEP, words, _change(config, topic, f"min.insync.replicas={replicas - 1}"))
    elif insync == 1:
        words = f"one of {replicas} replicas is enough for an acknowledgement: it can be lost with that broker"
        yield Finding.doubtful(_STEP, words, _change(config, topic, "min.insync.replicas=2"))
    if settings.get("unclean.leader.election.enable", "false") == "true":
        words = "unclean.leader.election.enable is true: what was acknowledged can be lost"
        yield Finding.doubtful(_STEP, words, _change(config, topic, "unclean.leader.election.enable=false"))


def _number(settings: Mapping[str, str], name: str, otherwise: int) -> int:
    told = settings.get(name, "")
    return int(told) if told.lstrip("-").isdecimal() else otherwise


def _kept(settings: Mapping[str, str]) -> str:
    kept = _number(settings, "retention.ms", -1)
    if kept < 0:
        return "for ever"
    return f"for {kept / _DAY_MS:g} days" if kept >= 2 * _DAY_MS else f"for {kept / 3_600_000:g} hours"


def _change(config: KafkaConfig, topic: Topic, setting: str) -> str:
    return (
        f"kafka-configs.sh --bootstrap-server {config.bootstrap_servers} --alter --entity-type topics "
        f"--entity-name {topic.name} --add-config {setting}"
    )


def _acl(config: KafkaConfig, topic: Topic, operation: str) -> str:
    return (
        f"kafka-acls.sh --bootstrap-server {config.bootstrap_servers} --add --allow-principal "
        f"User:{config.producer.get('sasl.username', '<name>')} --operation {operation} --topic {topic.name}"
    )
