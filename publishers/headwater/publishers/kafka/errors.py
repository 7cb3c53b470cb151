"""librdkafka's errors in words that say what to do: a short one for the cause, by which errors are counted, and advice.

A client sees most troubles only as time-outs. Their true cause is reported to `error_cb`, and to nobody else.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from confluent_kafka import KafkaError

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
