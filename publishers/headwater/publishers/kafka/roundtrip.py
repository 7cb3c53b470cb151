"""One event to a topic and back: written as a driver writes, read by its partition and offset."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4
from zlib import crc32

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from headwater.errors import HeadwaterError
from headwater.publishers.checks import probe_record
from headwater.publishers.kafka.cluster import KafkaTopic, describe_missing_right, oauth
from headwater.publishers.kafka.config import KafkaConfig
from headwater.publishers.kafka.errors import AUTHORIZATION, ErrorTracker, describe_error, split_advice
from headwater.publishers.kafka.schemas import make_schema_framing
from headwater.spi import CheckResult, ListenerContext

_TIMEOUT_SECONDS: Final = 15.0
_POLL_SECONDS: Final = 0.05
_MAX_CLOCK_DIFFERENCE: Final = 1.0


@dataclass(frozen=True)
class WrittenProbe:
    """Where the event is."""

    data: bytes
    partition: int
    offset: int
    began: float
    """Before it was sent and after it was acknowledged, by the clock of this machine."""
    ended: float
    appended: float | None
    """By the broker's clock, where the topic's times are that."""


class _RefusedError(Exception):
    """It isn't in."""


def check_round_trip(config: KafkaConfig, topic: KafkaTopic, context: ListenerContext) -> Iterator[CheckResult]:
    errors = ErrorTracker(context.report_problem, config.without_secrets)
    try:
        written = _write(config, topic, context, errors)
    except (_RefusedError, HeadwaterError) as e:
        yield CheckResult.error("writing", *split_advice(str(e)))
        return
    took = (written.ended - written.began) * 1000
    words = (
        f"one event is at offset {written.offset} of partition {written.partition}, acknowledged after {took:.0f} ms"
    )
    yield CheckResult.ok("writing", words)
    yield _read(config, topic, written)
    if written.appended is not None:
        yield _check_clocks(written, written.appended)


def _write(config: KafkaConfig, topic: KafkaTopic, context: ListenerContext, errors: ErrorTracker) -> WrittenProbe:
    record, schemas = probe_record(context.application), make_schema_framing(config)
    where, data = crc32(record.key) % topic.partitions, schemas.frame(record)
    settings: dict[str, Any] = {**config.sender(topic.max_message_bytes), **oauth(config), **errors.callbacks()}
    producer, ends = Producer(settings), list[tuple["KafkaError | None", Message]]()
    began = time.time()
    producer.produce(
        topic.name,
        value=data,
        key=record.key,
        partition=where,
        headers=list(record.headers),
        on_delivery=lambda error, message: ends.append((error, message)),
    )
    _await(config, producer, ends, errors)
    error, message = ends[0]
    if error is not None:
        raise _describe_refusal(config, error)
    kind, millis = message.timestamp()
    appended = millis / 1000 if kind == TIMESTAMP_LOG_APPEND_TIME else None
    return WrittenProbe(data, where, message.offset() or 0, began, time.time(), appended)


def _describe_refusal(config: KafkaConfig, error: KafkaError) -> _RefusedError:
    cause, words = describe_error(error)
    refusal = describe_missing_right(config, "write to") if cause == AUTHORIZATION else f"the event is refused: {words}"
    return _RefusedError(config.without_secrets(refusal))


def _await(
    config: KafkaConfig, producer: Producer, ends: list[tuple[KafkaError | None, Message]], errors: ErrorTracker
) -> None:
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while not ends:
        try:
            producer.poll(_POLL_SECONDS)
        except KafkaException as e:  # what stops a producer for good; its event is purged then
            raise _describe_refusal(config, e.args[0]) from e
        if ends:
            return
        if time.monotonic() > deadline or (errors.last is not None and errors.last.is_permanent):
            producer.purge()
            raise _RefusedError(errors.explain(f"the event isn't acknowledged within {_TIMEOUT_SECONDS:.0f} s"))


def _read(config: KafkaConfig, topic: KafkaTopic, written: WrittenProbe) -> CheckResult:
    """Nobody who only writes needs the right to read: not having it is no fault."""
    began = time.monotonic()
    try:
        message = _fetch(config, topic, written)
    except KafkaException as e:
        return _describe_unread(config, topic, e.args[0])
    if message is None:
        return CheckResult.warning("reading", f"the event didn't come back within {_TIMEOUT_SECONDS:.0f} s")
    if message.value() != written.data:
        words = f"what is at offset {written.offset} of partition {written.partition} isn't what was written"
        return CheckResult.error("reading", words, "does something between change messages?")
    return CheckResult.ok(
        "reading", f"it came back as it was written, after {(time.monotonic() - began) * 1000:.0f} ms"
    )


def _fetch(config: KafkaConfig, topic: KafkaTopic, written: WrittenProbe) -> Message | None:
    quiet = ErrorTracker(lambda _cause, _detail: None, config.without_secrets)
    reading = {"group.id": f"headwater-doctor-{uuid4()}", "enable.auto.commit": "false"}
    consumer = Consumer({**config.client(), **reading, **oauth(config), **quiet.callbacks()})
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    try:
        consumer.assign([TopicPartition(topic.name, written.partition, written.offset)])
        while time.monotonic() < deadline:
            message = consumer.poll(_POLL_SECONDS)
            error = None if message is None else message.error()
            if error is not None and describe_error(error).cause == AUTHORIZATION:
                raise KafkaException(error)
            if message is not None and error is None:
                return message
    finally:
        consumer.close()
    return None


def _describe_unread(config: KafkaConfig, topic: KafkaTopic, error: KafkaError) -> CheckResult:
    if describe_error(error).cause != AUTHORIZATION:
        return CheckResult.warning(
            "reading", f"the event can't be read: {config.without_secrets(describe_error(error).words)}"
        )
    grant = (
        f"kafka-acls.sh --bootstrap-server {config.bootstrap_servers} --add --allow-principal "
        f"User:{config.producer.get('sasl.username', '<name>')} --operation Read --topic {topic.name}"
    )
    words = "this user has no right to read the topic, which a driver doesn't need, so the event wasn't looked at"
    return CheckResult.warning("reading", words, grant)


def _check_clocks(written: WrittenProbe, appended: float) -> CheckResult:
    """The broker stamped it somewhere between the two looks at this machine's clock."""
    ahead = appended - written.ended
    behind = written.began - appended
    apart = max(ahead, behind, 0.0)
    if apart <= _MAX_CLOCK_DIFFERENCE:
        return CheckResult.ok("clocks", "this machine's and the broker's differ by less than a second")
    words = f"the broker's is {apart:.1f} s {'ahead of' if ahead > 0 else 'behind'} this machine's"
    return CheckResult.warning("clocks", words, "set both by the same time servers (chrony, ntpd)")
