"""Dead letters on a topic beside the one that they came from, with what is known of them in headers.

Key, value and headers are those of the record. Beside them stand, each with `headwater.` before it: `reason`, `words`,
`topic`, `topic-id`, `partition`, `offset`, and where they are known `kind`, `event` and `appended`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headwater.consumers.sources.lines import Lines
from headwater.errors import ConfigurationError, HeadwaterError, TerminalError, TransientError
from headwater.lineage.bulk import DeadLetter

_LOG: Final = logging.getLogger(__name__)
SUFFIX: Final = ".dead-letters"
PREFIX: Final = "headwater."
_ASK_SECONDS: Final = 20.0
_FLUSH_SECONDS: Final = 30.0
_LARGEST: Final = 4 << 20
"""More than the largest record of a topic and what is said about it."""
_SETTINGS: Final = {"max.message.bytes": str(_LARGEST), "retention.ms": str(30 * 86_400_000)}
_CONSUMERS: Final = (
    *("group.", "session.", "heartbeat.", "partition.assignment.", "max.poll.", "fetch.", "queued.", "auto.offset."),
    *("enable.auto.", "isolation.", "check.crcs", "auto.commit.", "coordinator.query."),
)
"""Settings that a producer doesn't know begin with one of these."""
_TOO_LARGE: Final = "give it more room (max.message.bytes)"
_LONGEST_WORDS: Final = 2_000


class DeadLetterTopic:
    """For one thread."""

    def __init__(self, settings: Mapping[str, str], topic: str) -> None:
        own = {key: value for key, value in settings.items() if not key.startswith(_CONSUMERS)}
        told: dict[str, Any] = {"error_cb": self._heard, "logger": Lines()}
        writing: dict[str, Any] = {
            "acks": "all",
            "message.max.bytes": _LARGEST,
            "message.timeout.ms": int(_FLUSH_SECONDS * 1_000),
            "allow.auto.create.topics": False,
        }
        self._topic = topic
        self._user = settings.get("sasl.username", "NAME")
        self._cluster = ""
        self._trouble = ""
        try:
            self._admin = AdminClient({**own, **told})
            self._client = Producer({**own, **told, **writing})
        except KafkaException as e:
            raise ConfigurationError(f"the settings of the Kafka client: {e.args[0].str()}") from e

    def cluster(self) -> str:
        if not self._cluster:
            self._cluster = self._made()
        return self._cluster

    def send(self, letters: Sequence[DeadLetter]) -> None:
        """One that there is no room for has those of its batch refused too: each is sent by itself then, and what is
        too large alone, without its bytes."""
        for letter in self._refused(letters):
            if self._refused([letter]) and self._refused([letter], with_value=False):
                raise TransientError(f"{self._topic} doesn't take even the headers of a dead letter: {_TOO_LARGE}")

    def _refused(self, letters: Sequence[DeadLetter], *, with_value: bool = True) -> list[DeadLetter]:
        """Those that were too large. Raises what else went wrong."""
        refused = self._sent(letters, with_value=with_value)
        error = next((error for _, error in refused if error.code() != KafkaError.MSG_SIZE_TOO_LARGE), None)
        if error is not None:
            raise self._told(error, _WRITE)
        return [letter for letter, _ in refused]

    def idle(self) -> None:
        """What its clients have to say is said."""
        self._admin.poll(0)
        self._client.poll(0)

    def close(self) -> None:
        self._client.purge()
        self._client.flush(1)

    def _sent(self, letters: Sequence[DeadLetter], *, with_value: bool = True) -> list[tuple[DeadLetter, KafkaError]]:
        """Those that weren't taken, and why."""
        answers: dict[int, KafkaError | None] = {}
        for number, letter in enumerate(letters):
            self._produce(letter, number, answers, with_value=with_value)
        self._client.flush(_FLUSH_SECONDS + 5)
        late = KafkaError(KafkaError._MSG_TIMED_OUT)  # noqa: SLF001 - so librdkafka calls its own errors
        told = ((letter, answers.get(number, late)) for number, letter in enumerate(letters))
        return [(letter, error) for letter, error in told if error is not None]

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

    def _made(self) -> str:
        """Which cluster it is; the topic is made, if there is none and that is allowed."""
        try:
            found = self._admin.list_topics(timeout=_ASK_SECONDS)
            if self._topic not in found.topics:
                self._make()
        except KafkaException as e:
            raise self._told(e.args[0], _MAKE) from e
        return str(found.cluster_id)

    def _make(self) -> None:
        new = NewTopic(self._topic, 1, -1, config=_SETTINGS)
        try:
            self._admin.create_topics([new], request_timeout=_ASK_SECONDS)[self._topic].result()
            _LOG.info("made the topic %s", self._topic)
        except KafkaException as e:
            if e.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise

    def _told(self, error: KafkaError, right: str) -> HeadwaterError:
        """`right` is what it takes. Brokers and clients tell that it isn't there in several ways: these words are the
        same each time."""
        self._cluster = ""  # what was there may be gone: it is looked for again
        if error.code() in _RIGHTS:
            return TerminalError(f"{self._topic}: {right.format(topic=self._topic, user=self._user)}; {_OFF}")
        cause = f" ({self._trouble})" if self._trouble and self._trouble != error.str() else ""
        words = f"{self._topic}: {error.str()}{cause}"
        if error.code() == KafkaError.POLICY_VIOLATION:
            return TerminalError(f"{words}: {_BY_HAND.format(topic=self._topic)}; {_OFF}")
        return TransientError(words)

    def _heard(self, error: KafkaError) -> None:
        self._trouble = error.str()


_RIGHTS: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
_BY_HAND: Final = "somebody who may has to make it (kafka-topics.sh --create --topic {topic})"
_ALLOW: Final = "kafka-acls.sh --add --allow-principal User:{user} --topic {topic}"
_MAKE: Final = (
    f"there is no such topic that this user may see, and it may not make it: {_BY_HAND} and give the right to write to "
    f"it ({_ALLOW} --operation Write), or give that and the right to make it (--operation Create)"
)
_WRITE: Final = f"this user may not write to it: somebody who may has to give the right ({_ALLOW} --operation Write)"
_OFF: Final = "or switch it off: --dead-letter-topic none"


def _headers(letter: DeadLetter, *, with_value: bool) -> Iterator[tuple[str, bytes]]:
    yield from letter.headers
    where = letter.partition
    said = {
        "reason": letter.reason.value,
        "words": letter.words[:_LONGEST_WORDS],
        "topic": letter.topic_name,
        "topic-id": where.topic,
        "partition": where.number,
        "offset": letter.position,
        "kind": letter.kind,
        "event": None if letter.event is None else str(letter.event),
        "appended": letter.appended,
        "left-out": None if with_value else f"{len(letter.data)} bytes, which are in the store's table",
    }
    for name, value in said.items():
        if value is not None:
            yield f"{PREFIX}{name}", str(value).encode("utf-8", "replace")
