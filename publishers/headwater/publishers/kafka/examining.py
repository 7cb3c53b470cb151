"""What `headwater doctor` finds out about a cluster: from the name service to one event that is written and read back.

addresses, connection, TLS    for each bootstrap server (network)
authentication, cluster       what librdkafka says, with the true cause
topic                         whether it is there, and what is doubtful in it (topic_settings)
writing, reading, clocks      one event, `Closed`, there and back (roundtrip)
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from headwater.errors import HeadwaterError
from headwater.publishers.kafka.cluster import Cluster
from headwater.publishers.kafka.config import KafkaConfig
from headwater.publishers.kafka.network import certificate_fault, look_at_certificate, look_at_network, speaks_tls
from headwater.publishers.kafka.roundtrip import write_and_read
from headwater.publishers.kafka.topic_settings import look_at_settings
from headwater.publishers.kafka.troubles import Troubles
from headwater.publishers.kafka.words import ADVICE, AUTHENTICATION, CLUSTER, TLS, with_advice
from headwater.spi import Condition, Finding, ListenerContext

_PATIENCE: Final = 15.0
_STEPS: Final = {AUTHENTICATION: "authentication", TLS: "TLS", CLUSTER: "cluster"}


def examine(config: KafkaConfig, context: ListenerContext) -> Iterator[Finding]:
    """Ends where nothing behind it can work."""
    reached = True
    for found in look_at_network(config, context.executor):
        reached = reached and found.state is not Condition.WRONG
        yield found
    if not reached:
        return
    troubles = Troubles(context.trouble, config.without_secrets)
    cluster = Cluster(config, troubles)
    try:
        answering = cluster.id(time.monotonic() + _PATIENCE)
    except HeadwaterError as e:
        yield from _unanswered(config, e, "" if troubles.last is None else troubles.last.cause)
        return
    if "SSL" in config.protocol:
        yield from look_at_certificate(config)
    yield from _known(config, answering)
    if config.cluster_id not in {None, answering}:
        return
    yield from _topic(config, cluster, answering, context)


def _unanswered(config: KafkaConfig, error: HeadwaterError, cause: str) -> Iterator[Finding]:
    """librdkafka's words, and of a certificate this Python's where it has some: those are plainer."""
    if cause == AUTHENTICATION and "SSL" in config.protocol:
        yield from look_at_certificate(config)
    fault = None
    if cause != AUTHENTICATION:
        fault = certificate_fault(config) if "SSL" in config.protocol else speaks_tls(config)
    if fault is not None:
        yield Finding.wrong("TLS", *fault)
        return
    words, advice = with_advice(str(error))
    yield Finding.wrong(_STEPS.get(cause, "cluster"), words, advice or ADVICE["timeout"])


def _known(config: KafkaConfig, answering: str) -> Iterator[Finding]:
    if "SASL" in config.protocol:
        user, mechanism = config.producer.get("sasl.username"), config.producer.get("sasl.mechanism", "GSSAPI")
        yield Finding.fine("authentication", f"{mechanism}" + (f", as {user}" if user else ""))
    if config.cluster_id not in {None, answering}:
        words = f"another cluster, {answering}, answers there: cluster.id names {config.cluster_id}"
        yield Finding.wrong("cluster", words, "put bootstrap.servers or cluster.id right")
        return
    yield Finding.fine("cluster", f"{answering} answers")


def _topic(config: KafkaConfig, cluster: Cluster, answering: str, context: ListenerContext) -> Iterator[Finding]:
    deadline = time.monotonic() + _PATIENCE
    try:
        there = cluster.look(answering, deadline)
        topic = there or cluster.topic(deadline)
    except HeadwaterError as e:
        yield Finding.wrong("topic", *with_advice(str(e)))
        return
    made = "is there" if there else "wasn't there, and is made now as a driver would have made it"
    yield Finding.fine("topic", f"{topic.name} {made}, with {_counted(topic.partitions, 'partition')}")
    yield from look_at_settings(config, topic)
    if not topic.may_write:
        yield Finding.wrong("writing", *with_advice(cluster.no_right("write to")))
        return
    yield from write_and_read(config, topic, context)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
