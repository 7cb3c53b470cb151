"""What stands under `spark.headwater.kafka.`, and what librdkafka gets of it.

Properties of librdkafka that it, or a promise of ours, doesn't accept: a slip of the pen costs a property, no event.

A property that is unknown, or whose value is wrong, is reported and left out, so its default holds. That isn't done
where the property, or one that may be meant, says where something goes or how a connection is secured: without it
events could go elsewhere or in the clear, so the listener waits until somebody puts it right, and its events wait in
the spool.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pydantic import Field, field_validator

from headwater.config import Config, Seconds
from headwater.events.redaction import Redactor

DEFAULT_TOPIC: Final = "headwater.events"
_TOPIC: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
_DAY: Final = 86_400.0

_FIXED: Final = {
    "acks": "all",
    "enable.idempotence": "true",
    "enable.gapless.guarantee": "true",
    "message.timeout.ms": "0",
}
_RESTRICTED: Final = {
    "acks": ({"all", "-1"}, "an event counts as delivered when all in-sync replicas have it"),
    "request.required.acks": ({"all", "-1"}, "an event counts as delivered when all in-sync replicas have it"),
    "enable.idempotence": ({"true"}, "without it a retry can turn the order of events round"),
    "enable.gapless.guarantee": ({"true"}, "without it an event may overtake one that was refused"),
    "message.timeout.ms": ({"0"}, "an event is tried until it is in, and the spool keeps it meanwhile"),
    "delivery.timeout.ms": ({"0"}, "an event is tried until it is in, and the spool keeps it meanwhile"),
    "delivery.report.only.error": ({"false"}, "the spool is cut by what was acknowledged"),
}
"""Settings that a promise hangs on: the values that keep it, and what the promise is."""

_FORBIDDEN: Final = {
    "bootstrap.servers": "write it without producer.",
    "metadata.broker.list": "write it as bootstrap.servers, without producer.",
    "partitioner": "events of one key keep their partition by CRC-32 of the key, whoever sends them",
    "transactional.id": "copies of an event are known by its id, transactions would only slow it down",
    "log_cb": "librdkafka's words go to the log of Python",
    "stats_cb": "a property can't hold a function",
    "error_cb": "a property can't hold a function",
    "throttle_cb": "a property can't hold a function",
    "on_delivery": "a property can't hold a function",
    "oauth_cb": "without producer., name package.module:function in oauth.token",
    "logger": "librdkafka's words go to the log of Python",
}
_DEFAULTS: Final = {
    # A topic is made with settings that matter, or not at all.
    "allow.auto.create.topics": "false",
    "client.id": "headwater",
    "compression.type": "lz4",
    "linger.ms": "5",
    "message.max.bytes": "2000000",
    "reconnect.backoff.max.ms": "5000",
    "socket.keepalive.enable": "true",
    "socket.timeout.ms": "20000",
    "request.timeout.ms": "20000",
}
"""What holds unless it is set: a broker that doesn't answer is given up and looked for again sooner than by default."""


class KafkaConfig(Config):
    """What stands under `spark.headwater.kafka.`."""

    bootstrap_servers: str
    """`host:port` of brokers, several with commas."""
    topic: str = DEFAULT_TOPIC
    """The topic that events go to."""
    topic_create: bool = True
    """Make the topic where there is none. The other `topic.` settings are for that, and change none that there is."""
    topic_partitions: Annotated[int, Field(ge=1, le=10_000)] = 6
    """Partitions of a new topic: so many consumers can share the work."""
    topic_replication: Annotated[int, Field(ge=-1, le=1_000)] = -1
    """Replicas of a new topic; -1 is the brokers' default."""
    topic_retention: Annotated[Seconds, Field(gt=0)] = 30 * _DAY
    """How long a new topic keeps events: so long a consumer may be away."""
    topic_config: Mapping[str, str] = Field(default_factory=dict)
    """Further settings of a new topic, `topic.config.min.insync.replicas` say."""
    cluster_id: str | None = None
    """The only cluster that events are sent to. Without it the first one that answers, until the driver ends."""
    oauth_token: str | None = None
    """`package.module:function` for OAUTHBEARER: takes `producer.sasl.oauthbearer.config`, returns what
    confluent_kafka's `oauth_cb` has to return."""
    schema_registry: Mapping[str, str] = Field(default_factory=dict, repr=False)
    """`schema.registry.url`, and whatever else Confluent's client of a schema registry takes."""
    producer: Mapping[str, str] = Field(default_factory=dict, repr=False)
    """Whatever librdkafka takes: `producer.security.protocol`, `producer.sasl.…`, `producer.compression.type` …"""

    @field_validator("bootstrap_servers")
    @classmethod
    def _names_somebody(cls, servers: str) -> str:
        if not servers.replace(",", "").strip():
            raise ValueError("write host:port of a broker, or of several with commas")
        return servers

    @field_validator("topic")
    @classmethod
    def _is_a_topic(cls, name: str) -> str:
        if not _TOPIC.fullmatch(name):
            raise ValueError("a topic's name has up to 249 letters, digits, dots, - and _")
        return name

    @field_validator("topic_replication")
    @classmethod
    def _is_a_factor(cls, factor: int) -> int:
        if factor == 0:
            raise ValueError("write -1 for the brokers' default, or how many replicas there are to be")
        return factor

    @field_validator("schema_registry")
    @classmethod
    def _has_a_url(cls, registry: Mapping[str, str]) -> Mapping[str, str]:
        if registry and not registry.get("url"):
            raise ValueError("say where it is, as schema.registry.url")
        return registry

    @field_validator("producer")
    @classmethod
    def _keeps_the_promises(cls, producer: Mapping[str, str]) -> Mapping[str, str]:
        faults = [fault for key, value in producer.items() if (fault := refuse_property(key, value))]
        if faults:
            raise ValueError("; ".join(faults))
        return producer

    @property
    def protocol(self) -> str:
        """How the brokers are spoken to: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        return self.producer.get("security.protocol", "plaintext").strip().upper()

    def topic_settings(self) -> dict[str, str]:
        """Of a topic that is made."""
        return {
            # The store bounds clocks that run ahead by the broker's time.
            "message.timestamp.type": "LogAppendTime",
            # A key is a job or a dataset: compaction would leave only the last event of each.
            "cleanup.policy": "delete",
            "retention.ms": str(round(self.topic_retention * 1000)),
            **self.topic_config,
        }

    def client(self) -> dict[str, str]:
        """The settings of a client that only asks."""
        security = {key: value for key, value in self.producer.items() if key not in _RESTRICTED}
        return {**_DEFAULTS, **security, "bootstrap.servers": self.bootstrap_servers}

    def sender(self, longest: int | None, *, one_by_one: bool = False) -> dict[str, str]:
        """The settings of a client that sends, to a topic that takes batches of so many bytes."""
        return {
            **_batch_limits(longest),
            **self.client(),
            **_FIXED,
            **({"batch.num.messages": "1"} if one_by_one else {}),
        }

    def without_secrets(self, text: str) -> str:
        """Words that may go anywhere: librdkafka tells values that it doesn't like."""
        for key, value in {**self.producer, **self.schema_registry}.items():
            if _REDACTOR.is_secret(key) and value:
                text = text.replace(value, "***")
        return _REDACTOR.text(text)


_REDACTOR: Final = Redactor()


def _batch_limits(longest: int | None) -> dict[str, str]:
    """A batch is measured before it is compressed, so that it fits whatever compression does."""
    return {} if longest is None else {"batch.size": str(max(1, min(longest, 1_000_000)))}


def refuse_property(key: str, value: str) -> str | None:
    """Say why a property that librdkafka may know can't have this value here; None where it can."""
    if key in _RESTRICTED:
        kept, promise = _RESTRICTED[key]
        return None if value.strip().lower() in kept else f"producer.{key} has to be {max(kept)}: {promise}"
    if key in _FORBIDDEN:
        return f"producer.{key} can't be set: {_FORBIDDEN[key]}"
    return None


_SECTION: Final = "producer."
_SECURES: Final = re.compile(
    r"secur|sasl|ssl|tls|auth|user|passw|cert|key|token|secret|credential|principal|kerb|crypt|ciph|protocol|mechanism"
    r"|jwt|jaas|trust|store|pem|sign|server|broker|host|addr|proxy|url|endpoint|listener|dns|callback|_cb$|plugin",
    re.IGNORECASE,
)
_MIN_SIMILARITY: Final = 0.6
_MEANT: Final = 3
"""So many names may be meant by one."""
_UNKNOWN_PROPERTY: Final = re.compile(r"No such configuration property: \"(?P<name>[^\"]+)\"")
_SILENT: Final = logging.Logger("headwater.properties", level=logging.CRITICAL + 1)  # noqa: LOG001 - for nobody
_SILENT.addHandler(logging.NullHandler())

_NAMES: Final = """
acks allow.auto.create.topics api.version.fallback.ms api.version.request api.version.request.timeout.ms
batch.num.messages batch.size bootstrap.servers broker.address.family broker.address.ttl broker.version.fallback
client.dns.lookup client.id client.rack compression.codec compression.level compression.type connections.max.idle.ms
debug delivery.report.only.error delivery.timeout.ms enable.gapless.guarantee enable.idempotence enable.metrics.push
enable.random.seed enable.sasl.oauthbearer.unsecure.jwt enable.sparse.connections enable.ssl.certificate.verification
linger.ms log.connection.close log.thread.name log_level max.in.flight max.in.flight.requests.per.connection
message.copy.max.bytes message.max.bytes message.send.max.retries message.timeout.ms metadata.broker.list
metadata.max.age.ms metadata.recovery.strategy metadata.recovery.rebootstrap.trigger.ms partitioner
plugin.library.paths queue.buffering.backpressure.threshold queue.buffering.max.kbytes queue.buffering.max.messages
queue.buffering.max.ms queuing.strategy receive.message.max.bytes reconnect.backoff.jitter.ms reconnect.backoff.max.ms
reconnect.backoff.ms request.required.acks request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms
sasl.kerberos.keytab sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.principal
sasl.kerberos.service.name sasl.mechanism sasl.mechanisms sasl.oauthbearer.client.id sasl.oauthbearer.client.secret
sasl.oauthbearer.config sasl.oauthbearer.extensions sasl.oauthbearer.method sasl.oauthbearer.scope
sasl.oauthbearer.token.endpoint.url sasl.password sasl.username security.protocol socket.connection.setup.timeout.ms
socket.keepalive.enable socket.max.fails socket.nagle.disable socket.receive.buffer.bytes socket.send.buffer.bytes
socket.timeout.ms ssl.ca.certificate.stores ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem
ssl.cipher.suites ssl.crl.location ssl.curves.list ssl.endpoint.identification.algorithm ssl.key.location
ssl.key.password ssl.key.pem ssl.keystore.location ssl.keystore.password ssl.providers ssl.sigalgs.list
statistics.interval.ms sticky.partitioning.linger.ms topic.metadata.propagation.max.ms
topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse
transaction.timeout.ms transactional.id
"""
NAMES: Final = tuple(_NAMES.split())
"""What a producer can be told: librdkafka has no way to ask for it. Only guesses depend on it: whether a property is
known, librdkafka says."""


def without_wrong_properties(
    values: Mapping[str, str], report: Callable[[str], None], *, shown: str = ""
) -> Mapping[str, str]:
    """Return the configuration of a listener without the properties that can be left out, after reporting each."""
    given = {key: value for key, value in values.items() if key.startswith(_SECTION) and key != _SECTION}
    properties = {key.removeprefix(_SECTION): value for key, value in given.items()}
    if not any(refuse_property(*given) for given in properties.items()) and _find_fault(properties) is None:
        return values
    right = dict(values)
    for key, value in given.items():
        name = key.removeprefix(_SECTION)
        fault = describe_fault(name, value, shown)
        if fault is not None and not any(map(_SECURES.search, [name, *_names_near(name)])):
            del right[key]
            report(f"{fault}; what holds now is the default")
    return right


def explain_refusal(words: str) -> str:
    """Return librdkafka's words on properties, with what may be meant by one that it doesn't know."""
    unknown = _UNKNOWN_PROPERTY.search(words)
    return _describe_unknown(unknown["name"]) if unknown else words


def _describe_unknown(name: str) -> str:
    """Say that librdkafka knows no such property, with the nearest ones that it knows."""
    near = _names_near(name)
    guess = f": did you mean {' or '.join(near)}?" if near else ": librdkafka's CONFIGURATION.md has all that there are"
    return f"there is no property {name} of librdkafka{guess}"


def _names_near(name: str) -> list[str]:
    """Return the names that may be meant by one; none for a name that is known."""
    return [] if name in NAMES else get_close_matches(name.lower(), NAMES, n=_MEANT, cutoff=_MIN_SIMILARITY)


def describe_fault(name: str, value: str, shown: str) -> str | None:
    """What is wrong with a property alone, without its value, which may be a secret."""
    refused = refuse_property(name, value)
    if refused is not None:
        return f"{shown}{refused}"
    fault = _find_fault({name: value})
    if fault is None:
        return None
    words = _describe_unknown(name) if _UNKNOWN_PROPERTY.search(fault) else "librdkafka doesn't accept its value"
    return f"{shown}{_SECTION}{name}: {words}"


def _find_fault(properties: Mapping[str, str]) -> str | None:
    """What librdkafka says against these properties. It connects to nobody: no broker is named."""
    named = {key: value for key, value in properties.items() if refuse_property(key, value) is None}
    settings: dict[str, Any] = {**named, "logger": _SILENT}
    try:
        AdminClient(settings)
    except KafkaException as e:
        return str(e.args[0].str())
    return None
