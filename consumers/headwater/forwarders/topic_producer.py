"""A topic of Kafka that messages go to: what was acknowledged is counted, and errors are told apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from headwater.errors import ConfigurationError, HeadwaterError, TerminalError, TransientError
from headwater.forwarders.http_delivery import RefusedContentError
from headwater.forwarders.secret_filter import SecretFilter
from headwater.spi import CheckResult

_FIXED: Final = {"acks": "all", "enable.idempotence": "true"}
_REFUSED: Final = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG, KafkaError.INVALID_RECORD}
_ADVICE: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "give this user the right to write to the topic",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "give this user the right to write idempotently",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "make the topic, or correct its name",
    KafkaError._UNKNOWN_TOPIC: "make the topic, or correct its name",  # noqa: SLF001 - librdkafka's own
    KafkaError._AUTHENTICATION: "below producer. correct the credentials",  # noqa: SLF001
}
_CHECK_SECONDS: Final = 10.0


class TopicProducer:
    """An idempotent producer of one topic."""

    def __init__(self, servers: str, topic: str, settings: Mapping[str, str], seconds: float) -> None:
        """`settings` are librdkafka's. `seconds` is how long an acknowledgement may take."""
        self._topic = topic
        self._seconds = seconds
        own = {"client.id": "headwater-forwarder", "delivery.timeout.ms": str(round(1000 * seconds))}
        try:
            self._producer = Producer({**own, **settings, **_FIXED, "bootstrap.servers": servers})
        except KafkaException as e:
            words = f"Kafka's client can't be made: {e.args[0]}; correct what is under producer."
            raise ConfigurationError(words) from e
        self._errors: list[KafkaError] = []
        self._secrets = SecretFilter.of_settings(settings)

    def send(self, key: str, value: bytes) -> None:
        """Give a message to librdkafka; one that is too large for any broker is refused at once."""
        while not self._is_taken(key, value):
            self._producer.poll(0.1)

    def finish(self) -> None:
        """Wait until all are acknowledged."""
        left = self._producer.flush(self._seconds + 1)
        errors, self._errors = self._errors, []
        if errors:
            raise self._error(errors[0])
        if left:
            raise TransientError(f"{left} messages weren't acknowledged within {self._seconds:g} s")

    def check(self) -> Iterator[CheckResult]:
        try:
            # Of all topics: to ask for one by its name would create it, where brokers create topics by themselves.
            topics = self._producer.list_topics(timeout=min(self._seconds, _CHECK_SECONDS)).topics
        except KafkaException as e:
            words = self._secrets.hide(e.args[0].str())
            yield CheckResult.error("brokers", words, "correct bootstrap.servers or what is under producer.")
            return
        yield CheckResult.ok("brokers", "they answer")
        if self._topic in topics:
            yield CheckResult.ok("topic", f"{self._topic} is there")
        else:
            advice = "make it, or correct its name, or give this user the right to see it"
            yield CheckResult.error("topic", f"there is no topic {self._topic}", advice)

    def close(self) -> None:
        self._producer.flush(1)
        del self._producer  # what it still has to deliver leads back here: it would live on until that is noticed

    def _is_taken(self, key: str, value: bytes) -> bool:
        """Whether there was room for the message."""
        try:
            self._producer.produce(self._topic, value, key, on_delivery=self._delivered)
        except BufferError:
            return False
        except KafkaException as e:
            raise self._error(e.args[0]) from e
        return True

    def _delivered(self, error: KafkaError | None, _message: Any) -> None:
        if error is not None:
            self._errors.append(error)

    def _error(self, error: KafkaError) -> HeadwaterError:
        words = f"topic {self._topic}: {self._secrets.hide(error.str())}"
        if error.code() in _REFUSED:
            return RefusedContentError(words)
        advice = _ADVICE.get(error.code())
        return TerminalError(f"{words}; {advice}") if advice else TransientError(words)
