"""Sends dead letters to a topic beside the one that they came from.

Key, value and headers are those of the original record. These headers are added, each with the prefix `headwater.`:
`reason`, `error`, `topic`, `topic-id`, `partition`, `offset`, and if known `kind`, `event` and `append-time`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headwater.consumers.sources.librdkafka_log import LibrdkafkaLogger
from headwater.errors import ConfigurationError, HeadwaterError, TerminalError, TransientError
from headwater.lineage.bulk import DeadLetter

_LOG: Final = logging.getLogger(__name__)
SUFFIX: Final = ".dead-letters"
PREFIX: Final = "headwater."
_ASK_SECONDS: Final = 20.0
_FLUSH_SECONDS: Final = 30.0
_LARGEST: Final = 4 << 20
"""More than the largest record of a topic, with its headers."""
_SETTINGS: Final = {"max.message.bytes": str(_LARGEST), "retention.ms": str(30 * 86_400_000)}
_CONSUMERS: Final = (
    *("group.", "session.", "heartbeat.", "partition.assignment.", "max.poll.", "fetch.", "queued.", "auto.offset."),
    *("enable.auto.", "isolation.", "check.crcs", "auto.commit.", "coordinator.query."),
)
"""Prefixes of consumer settings, which a producer refuses."""
_TOO_LARGE: Final = "give it more room (max.message.bytes)"
_MAX_ERROR_LENGTH: Final = 2_000


class DeadLetterTopic:
    """Sends dead letters, for one thread. Creates the topic if it doesn't exist and this user may."""

    def __init__(self, settings: Mapping[str, str], topic: str) -> None:
        own = {key: value for key, value in settings.items() if not key.startswith(_CONSUMERS)}
        logging_settings: dict[str, Any] = {"error_cb": self._on_error, "logger": LibrdkafkaLogger()}
        writing: dict[str, Any] = {
            "acks": "all",
            "message.max.bytes": _LARGEST,
            "message.timeout.ms": int(_FLUSH_SECONDS * 1_000),
            "allow.auto.create.topics": False,
        }
        self._topic = topic
        self._user = settings.get("sasl.username", "NAME")
        self._cluster = ""
        self._last_error = ""
        try:
            self._admin = AdminClient({**own, **logging_settings})
            self._client = Producer({**own, **logging_settings, **writing})
        except KafkaException as e:
            raise ConfigurationError(f"the settings of the Kafka client: {e.args[0].str()}") from e

    def cluster(self) -> str:
        if not self._cluster:
            self._cluster = self._ensure_topic()
        return self._cluster

    def send(self, letters: Sequence[DeadLetter]) -> None:
        """Send dead letters and wait for the acknowledgements.

        If the broker refuses a batch as too large, each letter is sent alone. A letter that is too large alone is sent
        without its value.
        """
        for letter in self._send_all_but_large(letters):
            if self._send_all_but_large([letter]) and self._send_all_but_large([letter], with_value=False):
                raise TransientError(f"{self._topic} doesn't take even the headers of a dead letter: {_TOO_LARGE}")

    def _send_all_but_large(self, letters: Sequence[DeadLetter], *, with_value: bool = True) -> list[DeadLetter]:
        """Return the letters that were too large. Raise an error for anything else that went wrong."""
        refused = self._send(letters, with_value=with_value)
        error = next((error for _, error in refused if error.code() != KafkaError.MSG_SIZE_TOO_LARGE), None)
        if error is not None:
            raise self._translated_error(error, _WRITE)
        return [letter for letter, _ in refused]

    def idle(self) -> None:
        """Serve the callbacks of both clients."""
        self._admin.poll(0)
        self._client.poll(0)

    def close(self) -> None:
        self._client.purge()
        self._client.flush(1)
        del self._client, self._admin  # their callbacks lead back here: both would live on until that is noticed

    def _send(self, letters: Sequence[DeadLetter], *, with_value: bool = True) -> list[tuple[DeadLetter, KafkaError]]:
        """Return the letters that weren't acknowledged, with the reason."""
        answers: dict[int, KafkaError | None] = {}
        for number, letter in enumerate(letters):
            self._produce(letter, number, answers, with_value=with_value)
        self._client.flush(_FLUSH_SECONDS + 5)
        late = KafkaError(KafkaError._MSG_TIMED_OUT)  # noqa: SLF001 - so librdkafka calls its own errors
        logging_settings = ((letter, answers.get(number, late)) for number, letter in enumerate(letters))
        return [(letter, error) for letter, error in logging_settings if error is not None]

    def _produce(
        self, letter: DeadLetter, number: int, answers: dict[int, KafkaError | None], *, with_value: bool
    ) -> None:
        def answered(error: KafkaError | None, _: Message) -> None:
            answers[number] = error

        headers: Any = list(_headers(letter, with_value=with_value))
        value = letter.data if with_value else None
        try:
            self._client.produce(self._topic, value, letter.key, headers=headers, on_delivery=answered)
        except KafkaException as e:  # it is too large for this client already
            answers[number] = e.args[0]
        except BufferError:
            self._client.flush(_FLUSH_SECONDS)
            self._produce(letter, number, answers, with_value=with_value)

    def _ensure_topic(self) -> str:
        """Return the cluster's id. Create the topic if there is none."""
        try:
            found = self._admin.list_topics(timeout=_ASK_SECONDS)
            if self._topic not in found.topics:
                self._make()
        except KafkaException as e:
            raise self._translated_error(e.args[0], _MAKE) from e
        return str(found.cluster_id)

    def _make(self) -> None:
        new = NewTopic(self._topic, 1, -1, config=_SETTINGS)
        try:
            self._admin.create_topics([new], request_timeout=_ASK_SECONDS)[self._topic].result()
            _LOG.info("made the topic %s", self._topic)
        except KafkaException as e:
            if e.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise

    def _translated_error(self, error: KafkaError, right: str) -> HeadwaterError:
        """Translate a Kafka error. `right` says which rights the operation needs. Brokers and clients report missing
        rights in several ways; the message is always the same."""
        self._cluster = ""  # what was there may be gone: it is looked for again
        if error.code() in _RIGHTS:
            return TerminalError(f"{self._topic}: {right.format(topic=self._topic, user=self._user)}; {_OFF}")
        cause = f" ({self._last_error})" if self._last_error and self._last_error != error.str() else ""
        words = f"{self._topic}: {error.str()}{cause}"
        if error.code() == KafkaError.POLICY_VIOLATION:
            return TerminalError(f"{words}: {_CREATE_YOURSELF.format(topic=self._topic)}; {_OFF}")
        return TransientError(words)

    def _on_error(self, error: KafkaError) -> None:
        self._last_error = error.str()


_RIGHTS: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
_CREATE_YOURSELF: Final = "somebody who may has to make it (kafka-topics.sh --create --topic {topic})"
_ALLOW: Final = "kafka-acls.sh --add --allow-principal User:{user} --topic {topic}"
_MAKE: Final = (
    f"there is no such topic that this user may see, and it may not make it: {_CREATE_YOURSELF} and give the right to "
    f"write to it ({_ALLOW} --operation Write), or give that and the right to make it (--operation Create)"
)
_WRITE: Final = f"this user may not write to it: somebody who may has to give the right ({_ALLOW} --operation Write)"
_OFF: Final = "or switch it off: --dead-letter-topic none"


def _headers(letter: DeadLetter, *, with_value: bool) -> Iterator[tuple[str, bytes]]:
    yield from letter.headers
    where = letter.partition
    said = {
        "reason": letter.reason.value,
        "error": letter.error[:_MAX_ERROR_LENGTH],
        "topic": letter.topic_name,
        "topic-id": where.topic,
        "partition": where.number,
        "offset": letter.position,
        "kind": letter.kind,
        "event": None if letter.event is None else str(letter.event),
        "append-time": letter.append_time,
        "left-out": None if with_value else f"{len(letter.data)} bytes, which are in the store's table",
    }
    for name, value in said.items():
        if value is not None:
            yield f"{PREFIX}{name}", str(value).encode("utf-8", "replace")
