"""What `headwater doctor` finds out about a cluster: from the name service to one event that is written and read back.

addresses, connection, TLS    for each bootstrap server (network)
authentication, cluster       what librdkafka says, with the true cause
topic                         whether it is there, and what is doubtful in it, with the command that changes it
writing, reading, clocks      one event, `Closed`, there and back (roundtrip)
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Final

from headwater.errors import HeadwaterError
from headwater.publishers.kafka.cluster import KafkaCluster, KafkaTopic
from headwater.publishers.kafka.config import KafkaConfig
from headwater.publishers.kafka.errors import ADVICE, AUTHENTICATION, CLUSTER, TLS, ErrorTracker, split_advice
from headwater.publishers.kafka.network import (
    check_certificate,
    check_network,
    find_certificate_fault,
    find_tls_mismatch,
)
from headwater.publishers.kafka.roundtrip import check_round_trip
from headwater.spi import CheckResult, CheckStatus, ListenerContext

_STEP: Final = "settings"
_DAY_MS: Final = 86_400_000
_MAX_EVENT_BYTES: Final = 1_010_000
"""An event has up to 1,000,000 bytes; its key, its headers and the batch around it come on top."""
_DEFAULT_MESSAGE_BYTES: Final = 1_048_588


def check_topic_settings(config: KafkaConfig, topic: KafkaTopic) -> Iterator[CheckResult]:
    if topic.settings is None:
        words = f"the settings of {topic.name} may not be seen by this user, so nothing is known of them"
        yield CheckResult.warning(_STEP, words, _acl_command(config, topic, "DescribeConfigs"))
        return
    doubts = [
        *_check_timestamps(config, topic),
        *_check_sizes(config, topic, topic.settings),
        *_check_replicas(config, topic, topic.settings),
    ]
    yield from doubts
    if not doubts:
        yield CheckResult.ok(_STEP, f"{', '.join(_check_cleanup_policy(topic, topic.settings))}")


def _check_cleanup_policy(topic: KafkaTopic, settings: Mapping[str, str]) -> Iterator[str]:
    yield "times are the brokers'"
    yield f"events are kept {_describe_retention(settings)}"
    yield f"{topic.replicas} replicas, of which {settings.get('min.insync.replicas', '1')} have to have an event"
    yield f"batches of up to {settings.get('max.message.bytes', _DEFAULT_MESSAGE_BYTES)} bytes"


def _check_timestamps(config: KafkaConfig, topic: KafkaTopic) -> Iterator[CheckResult]:
    settings = topic.settings or {}
    kind = settings.get("message.timestamp.type", "CreateTime")
    if kind != "LogAppendTime":
        words = f"message.timestamp.type is {kind}: a driver whose clock is wrong isn't found out"
        yield CheckResult.warning(_STEP, words, _change_command(config, topic, "message.timestamp.type=LogAppendTime"))
    if "compact" in settings.get("cleanup.policy", "delete"):
        words = "cleanup.policy is compact: of each job and each dataset only the last event would stay"
        yield CheckResult.error(_STEP, words, _change_command(config, topic, "cleanup.policy=delete"))


def _check_sizes(config: KafkaConfig, topic: KafkaTopic, settings: Mapping[str, str]) -> Iterator[CheckResult]:
    kept, room = _number_of(settings, "retention.ms", -1), _number_of(settings, "retention.bytes", -1)
    if 0 <= kept < _DAY_MS:
        words = f"events are kept {_describe_retention(settings)}: who consumes them and is away for longer misses some"
        wanted = f"retention.ms={config.topic_settings()['retention.ms']}"
        yield CheckResult.warning(_STEP, words, _change_command(config, topic, wanted))
    if room >= 0:
        words = f"retention.bytes is {room}: above that events of a partition go before their time"
        yield CheckResult.warning(_STEP, words, _change_command(config, topic, "retention.bytes=-1"))
    longest = _number_of(settings, "max.message.bytes", _DEFAULT_MESSAGE_BYTES)
    if longest < _MAX_EVENT_BYTES:
        words = f"max.message.bytes is {longest}: an event can have 1,000,000, and would wait until that is more"
        yield CheckResult.error(
            _STEP, words, _change_command(config, topic, f"max.message.bytes={_DEFAULT_MESSAGE_BYTES}")
        )
    if topic.partitions == 1:
        words = "there is one partition, so one consumer at a time; more can be had while nobody writes"
        command = f"kafka-topics.sh --bootstrap-server {config.bootstrap_servers} --alter --topic {topic.name}"
        yield CheckResult.warning(_STEP, words, f"{command} --partitions {config.topic_partitions}")


def _check_replicas(config: KafkaConfig, topic: KafkaTopic, settings: Mapping[str, str]) -> Iterator[CheckResult]:
    insync, replicas = _number_of(settings, "min.insync.replicas", 1), topic.replicas
    if insync > replicas:
        # Newer brokers ask for no more than there are (Partition.effectiveMinIsr).
        words = f"min.insync.replicas is {insync}, and there are {replicas} replicas: older brokers take nothing then"
        yield CheckResult.warning(
            _STEP, words, _change_command(config, topic, f"min.insync.replicas={max(1, replicas - 1)}")
        )
    if replicas == 1:
        words = "there is one replica: events are lost with the disk of one broker"
        advice = "with three brokers or more: kafka-reassign-partitions.sh, to three replicas"
        yield CheckResult.warning(_STEP, words, advice)
    elif insync == replicas:
        words = f"all {replicas} replicas have to have an event: while one broker is away nothing can be written"
        yield CheckResult.warning(_STEP, words, _change_command(config, topic, f"min.insync.replicas={replicas - 1}"))
    elif insync == 1:
        words = f"one of {replicas} replicas is enough for an acknowledgement: it can be lost with that broker"
        yield CheckResult.warning(_STEP, words, _change_command(config, topic, "min.insync.replicas=2"))
    if settings.get("unclean.leader.election.enable", "false") == "true":
        words = "unclean.leader.election.enable is true: what was acknowledged can be lost"
        yield CheckResult.warning(_STEP, words, _change_command(config, topic, "unclean.leader.election.enable=false"))


def _number_of(settings: Mapping[str, str], name: str, otherwise: int) -> int:
    value = settings.get(name, "")
    return int(value) if value.lstrip("-").isdecimal() else otherwise


def _describe_retention(settings: Mapping[str, str]) -> str:
    kept = _number_of(settings, "retention.ms", -1)
    if kept < 0:
        return "for ever"
    return f"for {kept / _DAY_MS:g} days" if kept >= 2 * _DAY_MS else f"for {kept / 3_600_000:g} hours"


def _change_command(config: KafkaConfig, topic: KafkaTopic, setting: str) -> str:
    return (
        f"kafka-configs.sh --bootstrap-server {config.bootstrap_servers} --alter --entity-type topics "
        f"--entity-name {topic.name} --add-config {setting}"
    )


def _acl_command(config: KafkaConfig, topic: KafkaTopic, operation: str) -> str:
    return (
        f"kafka-acls.sh --bootstrap-server {config.bootstrap_servers} --add --allow-principal "
        f"User:{config.producer.get('sasl.username', '<name>')} --operation {operation} --topic {topic.name}"
    )


_TIMEOUT_SECONDS: Final = 15.0
_STEPS: Final = {AUTHENTICATION: "authentication", TLS: "TLS", CLUSTER: "cluster"}


def check_kafka(config: KafkaConfig, context: ListenerContext) -> Iterator[CheckResult]:
    """Ends where nothing behind it can work."""
    reached = True
    for found in check_network(config, context.executor):
        reached = reached and found.status is not CheckStatus.ERROR
        yield found
    if not reached:
        return
    errors = ErrorTracker(context.report_problem, config.without_secrets)
    with closing(KafkaCluster(config, errors)) as cluster:
        yield from _check_answers(config, cluster, errors, context)


def _check_answers(
    config: KafkaConfig, cluster: KafkaCluster, errors: ErrorTracker, context: ListenerContext
) -> Iterator[CheckResult]:
    try:
        answer_time = cluster.id(time.monotonic() + _TIMEOUT_SECONDS)
    except HeadwaterError as e:
        yield from _describe_no_answer(config, e, "" if errors.last is None else errors.last.cause)
        return
    if "SSL" in config.protocol:
        yield from check_certificate(config)
    yield from _check_cluster(config, answer_time)
    if config.cluster_id not in {None, answer_time}:
        return
    yield from _check_topic(config, cluster, context)


def _describe_no_answer(config: KafkaConfig, error: HeadwaterError, cause: str) -> Iterator[CheckResult]:
    """librdkafka's words, and of a certificate this Python's where it has some: those are plainer."""
    if cause == AUTHENTICATION and "SSL" in config.protocol:
        yield from check_certificate(config)
    fault = None
    if cause != AUTHENTICATION:
        fault = find_certificate_fault(config) if "SSL" in config.protocol else find_tls_mismatch(config)
    if fault is not None:
        yield CheckResult.error("TLS", *fault)
        return
    words, advice = split_advice(str(error))
    yield CheckResult.error(_STEPS.get(cause, "cluster"), words, advice or ADVICE["timeout"])


def _check_cluster(config: KafkaConfig, answer_time: str) -> Iterator[CheckResult]:
    if "SASL" in config.protocol:
        user, mechanism = config.producer.get("sasl.username"), config.producer.get("sasl.mechanism", "GSSAPI")
        yield CheckResult.ok("authentication", f"{mechanism}" + (f", as {user}" if user else ""))
    if config.cluster_id not in {None, answer_time}:
        words = f"another cluster, {answer_time}, answers there: cluster.id names {config.cluster_id}"
        yield CheckResult.error("cluster", words, "put bootstrap.servers or cluster.id right")
        return
    yield CheckResult.ok("cluster", f"cluster {answer_time} answers")


def _check_topic(config: KafkaConfig, cluster: KafkaCluster, context: ListenerContext) -> Iterator[CheckResult]:
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    try:
        there = cluster.describe(deadline)
        topic = there or cluster.topic(deadline)
    except HeadwaterError as e:
        yield CheckResult.error("topic", *split_advice(str(e)))
        return
    made = "is there" if there else "wasn't there, and is made now as a driver would have made it"
    yield CheckResult.ok("topic", f"{topic.name} {made}, with {_count_words(topic.partitions, 'partition')}")
    yield from check_topic_settings(config, topic)
    yield from check_round_trip(config, topic, context)


def _count_words(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
