"""librdkafka's errors in words that say what to do: a short one for the cause, by which errors are counted, and advice.

A client sees most troubles only as time-outs. Their true cause is reported to `error_cb`, and to nobody else: a tracker
keeps it for whoever looks at the listener.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, ThrottleEvent

AUTHENTICATION: Final = "authentication"
AUTHORIZATION: Final = "authorization"
CLUSTER: Final = "cluster"
SILENCE: Final = "silence"
THROTTLED: Final = "throttled"
TLS: Final = "tls"
TOO_LARGE: Final = "too_large"
TOPIC: Final = "topic"

_CAUSE_BY_CODE: Final = {
    KafkaError._AUTHENTICATION: AUTHENTICATION,
    KafkaError.SASL_AUTHENTICATION_FAILED: AUTHENTICATION,
    KafkaError.UNSUPPORTED_SASL_MECHANISM: AUTHENTICATION,
    KafkaError.ILLEGAL_SASL_STATE: AUTHENTICATION,
    KafkaError._SSL: TLS,
    KafkaError._RESOLVE: "resolve",
    KafkaError._TRANSPORT: "transport",
    KafkaError._ALL_BROKERS_DOWN: "transport",
    KafkaError._TIMED_OUT: "timeout",
    KafkaError.REQUEST_TIMED_OUT: "timeout",
    KafkaError._BAD_MSG: "protocol",
    KafkaError.MSG_SIZE_TOO_LARGE: TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE: TOO_LARGE,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: AUTHORIZATION,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: AUTHORIZATION,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: AUTHORIZATION,
    KafkaError.UNKNOWN_TOPIC_OR_PART: TOPIC,
    KafkaError._UNKNOWN_TOPIC: TOPIC,
    KafkaError._UNKNOWN_PARTITION: TOPIC,
    KafkaError.NOT_ENOUGH_REPLICAS: "replicas",
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "replicas",
    KafkaError.LEADER_NOT_AVAILABLE: "replicas",
    KafkaError.POLICY_VIOLATION: "policy",
}
_PERMANENT_CAUSES: Final = frozenset({AUTHENTICATION, TLS})
"""What only somebody mends who changes the configuration, or the broker's."""

ADVICE: Final = {
    AUTHENTICATION: "put right producer.sasl.mechanism, producer.sasl.username and producer.sasl.password",
    TLS: "name the certificate of the authority that signed the broker's in producer.ssl.ca.location, and reach the "
    "broker by the name that stands in its certificate",
    "resolve": "put bootstrap.servers right, or the name service",
    "transport": "is a broker running there, and is producer.security.protocol what its port speaks?",
    "timeout": "is a broker running there, and is producer.security.protocol what its port speaks?",
    "protocol": "what answers there doesn't speak Kafka, or speaks it through TLS: is the port right, and "
    "producer.security.protocol?",
    "replicas": "see to the brokers: fewer replicas are in sync than min.insync.replicas asks for",
}
_CONSEQUENCES: Final = frozenset(
    {
        KafkaError._FATAL,
        KafkaError._GAPLESS_GUARANTEE,
        KafkaError._PURGE_QUEUE,
        KafkaError._PURGE_INFLIGHT,
        KafkaError._DESTROY,
    }
)
"""What librdkafka says of records that fall with another one."""


class KafkaProblem(NamedTuple):
    """An error in words."""

    cause: str
    words: str

    @property
    def is_permanent(self) -> bool:
        return self.cause in _PERMANENT_CAUSES


def describe_error(error: KafkaError) -> KafkaProblem:
    cause = _CAUSE_BY_CODE.get(error.code(), error.name().strip("_").lower())
    advice = ADVICE.get(cause)
    text = error.str() or error.name()
    return KafkaProblem(cause, f"{text}: {advice}" if advice else text)


def split_advice(text: str) -> tuple[str, str]:
    """What happened, and what to do about it, of an error's text that holds both."""
    for advice in ADVICE.values():
        if text.endswith(f": {advice}"):
            return text.removesuffix(f": {advice}"), advice
    words, is_command, command = text.partition(": kafka-")
    return words, f"kafka-{command}" if is_command else ""


def is_cause(error: KafkaError) -> bool:
    """Whether it tells why something failed, and not only that it fell with something else."""
    return error.code() not in _CONSEQUENCES


_LOG: Final = logging.getLogger(__name__)
_CONNECTION_LOST: Final = "FAIL"
_HUNG_UP_AT_ONCE: Final = "in state APIVERSION_QUERY"
"""The other side hung up when it was spoken to."""


class ErrorTracker:
    """Gathers what `error_cb` and `throttle_cb` receive: while a client is polled, on the thread that polls."""

    def __init__(self, report: Callable[[str, str], None], hide: Callable[[str], str]) -> None:
        self.last: KafkaProblem | None = None
        """Since the last `clear`; one that nobody but a person can mend stays before any other."""
        self.has_no_answer = False
        """All brokers were tried since the last `clear`."""
        self.losses = 0
        """Connections that were lost, or couldn't be made."""
        self._report = report
        self._hide = hide

    def callbacks(self) -> dict[str, Any]:
        """To be added to the settings of a client."""
        return {"error_cb": self.on_error, "throttle_cb": self._on_throttle, "logger": self}

    def clear(self) -> None:
        self.last = None
        self.has_no_answer = False

    def on_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.has_no_answer = True  # why not was reported for each
        elif is_cause(error):
            self.add(describe_error(error))

    def add(self, trouble: KafkaProblem) -> None:
        trouble = KafkaProblem(trouble.cause, self._hide(trouble.words))
        if self.last is None or trouble.is_permanent or not self.last.is_permanent:
            self.last = trouble
        self._report(trouble.cause, trouble.words)

    def explain(self, otherwise: str) -> str:
        """The cause that was reported, where one was."""
        return otherwise if self.last is None else f"{otherwise}: {self.last.words}"

    def log(self, _level: int, text: str, *arguments: object) -> None:
        """What librdkafka logs, each attempt to connect above all. A connection that is lost and made anew at once is
        reported nowhere else."""
        if _LOG.isEnabledFor(logging.DEBUG):
            _LOG.debug("%s", self._hide(text % arguments))
        if arguments[:1] == (_CONNECTION_LOST,):
            self.losses += 1
            line = text % arguments
            if _HUNG_UP_AT_ONCE in line:
                self.on_error(KafkaError(KafkaError._BAD_MSG, line.partition("]: ")[2] or line))

    def _on_throttle(self, event: ThrottleEvent) -> None:
        words = f"the brokers slow this client down, by {event.throttle_time:.1f} s just now: its quota is used up"
        self._report(THROTTLED, words)
