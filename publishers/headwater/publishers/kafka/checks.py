"""What `headwater doctor` finds out about a cluster: from the name service to one event that is written and read back.

addresses, connection, TLS    for each bootstrap server (network)
authentication, cluster       what librdkafka says, with the true cause
topic                         whether it is there, and what is doubtful in it (topic_settings)
writing, reading, clocks      one event, `Closed`, there and back (roundtrip)
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from headwater.errors import HeadwaterError
from headwater.publishers.kafka.cluster import KafkaCluster
from headwater.publishers.kafka.config import KafkaConfig
from headwater.publishers.kafka.error_tracker import ErrorTracker
from headwater.publishers.kafka.errors import ADVICE, AUTHENTICATION, CLUSTER, TLS, split_advice
from headwater.publishers.kafka.network import (
    check_certificate,
    check_network,
    find_certificate_fault,
    find_tls_mismatch,
)
from headwater.publishers.kafka.roundtrip import check_round_trip
from headwater.publishers.kafka.topic_settings import check_topic_settings
from headwater.spi import CheckResult, CheckStatus, ListenerContext

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
