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
from headwater.publishers.kafka.cluster import Topic, oauth
from headwater.publishers.kafka.config import KafkaConfig
from headwater.publishers.kafka.schemas import schemas_for
from headwater.publishers.kafka.troubles import Troubles
from headwater.publishers.kafka.words import AUTHORIZATION, trouble_of
from headwater.publishers.trial import trial_record
from headwater.spi import Finding, ListenerContext

_PATIENCE: Final = 15.0
_SLICE: Final = 0.05
_FAR_APART: Final = 1.0


@dataclass(frozen=True)
class Written:
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


def write_and_read(config: KafkaConfig, topic: Topic, context: ListenerContext) -> Iterator[Finding]:
    troubles = Troubles(context.trouble, config.without_secrets)
    try:
        written = _write(config, topic, context, troubles)
    except (_RefusedError, HeadwaterError) as e:
        yield Finding.wrong("writing", str(e))
        return
    took = (written.ended - written.began) * 1000
    words = (
        f"one event is at offset {written.offset} of partition {written.partition}, acknowledged after {took:.0f} ms"
    )
    yield Finding.fine("writing", words)
    yield _read(config, topic, written)
    if written.appended is not None:
        yield _clocks(written, written.appended)


def _write(config: KafkaConfig, topic: Topic, context: ListenerContext, troubles: Troubles) -> Written:
    record, schemas = trial_record(context.application), schemas_for(config)
    where, data = crc32(record.key) % topic.partitions, schemas.framed(record)
    settings: dict[str, Any] = {**config.sender(topic.longest), **oauth(config), **troubles.callbacks()}
    producer, ends = Producer(settings), list[tuple["KafkaError | None", Message]]()
    schema = schemas.before(record, where)
    began = time.time()
    if schema is not None:
        producer.produce(topic.name, value=schema.data, key=b"", partition=where, headers=list(schema.headers))
    producer.produce(
        topic.name,
        value=data,
        key=record.key,
        partition=where,
        headers=list(record.headers),
        on_delivery=lambda error, message: ends.append((error, message)),
    )
    _await(producer, ends, troubles)
    error, message = ends[0]
    if error is not None:
        raise _RefusedError(config.without_secrets(f"the event is refused: {trouble_of(error).words}"))
    kind, millis = message.timestamp()
    appended = millis / 1000 if kind == TIMESTAMP_LOG_APPEND_TIME else None
    return Written(data, where, message.offset() or 0, began, time.time(), appended)


def _await(producer: Producer, ends: list[tuple[KafkaError | None, Message]], troubles: Troubles) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not ends:
        producer.poll(_SLICE)
        if ends:
            return
        if time.monotonic() > deadline or (troubles.last is not None and troubles.last.is_hopeless):
            producer.purge()
            raise _RefusedError(troubles.explain(f"the event isn't acknowledged within {_PATIENCE:.0f} s"))


def _read(config: KafkaConfig, topic: Topic, written: Written) -> Finding:
    """Nobody who only writes needs the right to read: not having it is no fault."""
    began = time.monotonic()
    try:
        message = _fetched(config, topic, written)
    except KafkaException as e:
        return _unread(config, topic, e.args[0])
    if message is None:
        return Finding.doubtful("reading", f"the event didn't come back within {_PATIENCE:.0f} s")
    if message.value() != written.data:
        words = f"what is at offset {written.offset} of partition {written.partition} isn't what was written"
        return Finding.wrong("reading", words, "does something between change messages?")
    return Finding.fine("reading", f"it came back as it was written, after {(time.monotonic() - began) * 1000:.0f} ms")


def _fetched(config: KafkaConfig, topic: Topic, written: Written) -> Message | None:
    quiet = Troubles(lambda _cause, _detail: None, config.without_secrets)
    reading = {"group.id": f"headwater-doctor-{uuid4()}", "enable.auto.commit": "false"}
    consumer = Consumer({**config.client(), **reading, **oauth(config), **quiet.callbacks()})
    deadline = time.monotonic() + _PATIENCE
    try:
        consumer.assign([TopicPartition(topic.name, written.partition, written.offset)])
        while time.monotonic() < deadline:
            message = consumer.poll(_SLICE)
            error = None if message is None else message.error()
            if error is not None and trouble_of(error).cause == AUTHORIZATION:
                raise KafkaException(error)
            if message is not None and error is None:
                return message
    finally:
        consumer.close()
    return None


def _unread(config: KafkaConfig, topic: Topic, error: KafkaError) -> Finding:
    if trouble_of(error).cause != AUTHORIZATION:
        return Finding.doubtful(
            "reading", f"the event can't be read: {config.without_secrets(trouble_of(error).words)}"
        )
    grant = (
        f"kafka-acls.sh --bootstrap-server {config.bootstrap_servers} --add --allow-principal "
        f"User:{config.producer.get('sasl.username', '<name>')} --operation Read --topic {topic.name}"
    )
    words = "this user has no right to read the topic, which a driver doesn't need, so the event wasn't looked at"
    return Finding.doubtful("reading", words, grant)


def _clocks(written: Written, appended: float) -> Finding:
    """The broker stamped it somewhere between the two looks at this machine's clock."""
    ahead = appended - written.ended
    behind = written.began - appended
    apart = max(ahead, behind, 0.0)
    if apart <= _FAR_APART:
        return Finding.fine("clocks", "this machine's and the broker's differ by less than a second")
    words = f"the broker's is {apart:.1f} s {'ahead of' if ahead > 0 else 'behind'} this machine's"
    return Finding.doubtful("clocks", words, "set both by the same time servers (chrony, ntpd)")
