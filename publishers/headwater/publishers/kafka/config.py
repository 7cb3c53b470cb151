"""What stands under `spark.headwater.kafka.`, and what librdkafka gets of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final

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
