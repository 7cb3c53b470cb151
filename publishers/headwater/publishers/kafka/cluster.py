"""What is asked of a cluster before anything is sent to it: which one it is, if it has the topic, what that takes."""

from __future__ import annotations

import shlex
import time
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata, ConfigResource, NewTopic, ResourceType

from headwater import plugins
from headwater.errors import HeadwaterError, PluginError, TerminalError, TransientError
from headwater.publishers.kafka.config import KafkaConfig
from headwater.publishers.kafka.errors import AUTHORIZATION, CLUSTER, ErrorTracker, KafkaProblem, describe_error

T = TypeVar("T")
_POLL_SECONDS: Final = 0.02
_FIRST_SLICE: Final = 0.25
_ABSENT_TOPIC: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})


@dataclass(frozen=True)
class KafkaTopic:
    """A topic as it is now."""

    name: str
    cluster: str
    partitions: int
    settings: dict[str, str] | None = None
    """None where this client may not see them."""
    replicas: int = 1
    """Of each partition, at least."""

    @property
    def max_message_bytes(self) -> int | None:
        """How many bytes it takes in one batch."""
        found = (self.settings or {}).get("max.message.bytes", "")
        return int(found) if found.isdigit() else None


class KafkaCluster:
    """Asks; for one thread. Nothing waits longer than it is asked to, or once it is known that waiting won't help."""

    def __init__(self, config: KafkaConfig, errors: ErrorTracker) -> None:
        """A ValueError where librdkafka doesn't like the settings."""
        self._config = config
        self._errors = errors
        self._is_cancelled = False
        try:
            self._client = AdminClient({**config.client(), **oauth(config), **errors.callbacks()})
        except KafkaException as e:
            raise ValueError(config.without_secrets(e.args[0].str())) from None

    def cancel(self) -> None:
        """Nobody waits for an answer any more. From any thread."""
        self._is_cancelled = True

    def close(self) -> None:
        """Let go of the client, which would connect again and again for as long as it lives."""
        del self._client  # the callbacks in it lead back here: it would live on until that is noticed

    def topic(self, deadline: float, pinned: str | None = None) -> KafkaTopic:
        """The topic, made if there is none and that is allowed. A HeadwaterError says why it can't be had: a
        TerminalError where somebody has to see to it."""
        metadata = self._metadata(deadline)
        self._check_identity(str(metadata.cluster_id), pinned)
        found = self._describe(metadata, deadline)
        if found is None:
            self._create(deadline)
            found = self._await_topic(deadline)
        return found

    def id(self, deadline: float) -> str:
        """Which cluster answers."""
        return str(self._metadata(deadline).cluster_id)

    def describe(self, deadline: float) -> KafkaTopic | None:
        """The topic as it is; None where there is none."""
        return self._describe(self._metadata(deadline), deadline)

    def _metadata(self, deadline: float) -> ClusterMetadata:
        """Who the cluster is, and the topic.

        Not by DescribeCluster and DescribeTopics: librdkafka (2.16, and later ones) aborts the whole process where an
        answer to these comes while its client is being destroyed.
        """
        self._errors.clear()
        slice_seconds = _FIRST_SLICE
        while True:
            try:
                return self._client.list_topics(self._config.topic, timeout=min(slice_seconds, _time_left(deadline)))
            except KafkaException as e:
                self._check_pending(deadline, e)
            slice_seconds *= 2  # a broker that takes long to answer does so within one of them

    def _describe(self, metadata: ClusterMetadata, deadline: float) -> KafkaTopic | None:
        name = self._config.topic
        found = metadata.topics[name]
        if found.error is not None:
            if found.error.code() in _ABSENT_TOPIC:
                return None
            raise self._describe_refusal(found.error, "see")
        replicas = min((len(partition.replicas) for partition in found.partitions.values()), default=1)
        return KafkaTopic(name, str(metadata.cluster_id), len(found.partitions), self._settings(deadline), replicas)

    def create_command(self) -> str:
        """What makes the topic."""
        config, settings = self._config, self._config.topic_settings()
        replicas = f" --replication-factor {config.topic_replication}" if config.topic_replication > 0 else ""
        return (
            f"kafka-topics.sh --bootstrap-server {self._servers} --create --topic {config.topic} "
            f"--partitions {config.topic_partitions}{replicas}"
            + "".join(f" --config {shlex.quote(f'{key}={value}')}" for key, value in settings.items())
        )

    @property
    def _servers(self) -> str:
        return self._config.bootstrap_servers

    def _check_identity(self, cluster: str, pinned: str | None) -> None:
        wanted = self._config.cluster_id or pinned
        if wanted in {None, cluster}:
            return
        whose = "cluster.id names" if self._config.cluster_id else "this driver has been writing to cluster"
        words = (
            f"another cluster, {cluster}, answers at {self._servers}: nothing is sent to it, because {whose} {wanted}; "
            "events wait in the spool until that one is back"
        )
        self._errors.add(KafkaProblem(CLUSTER, words))
        raise TransientError(words)

    def _create(self, deadline: float) -> None:
        config = self._config
        absent = f"there is no topic {config.topic} at {self._servers}"
        if not config.topic_create:
            raise TerminalError(f"{absent}, and topic.create is false: {self.create_command()}")
        new = NewTopic(config.topic, config.topic_partitions, config.topic_replication, config=config.topic_settings())
        asked = self._client.create_topics([new], request_timeout=_time_left(deadline))
        try:
            self._answer(asked[config.topic], deadline)
        except KafkaException as e:
            error = e.args[0]
            if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return
            if describe_error(error).cause == AUTHORIZATION:
                raise TerminalError(
                    f"{absent}, and {describe_missing_right(config, 'make')}, or {self.create_command()}"
                ) from e
            if error.retriable():
                raise TransientError(f"{absent}, and it can't be made now: {error.str()}") from e
            raise TerminalError(f"{absent}, and it can't be made: {error.str()}: {self.create_command()}") from e

    def _await_topic(self, deadline: float) -> KafkaTopic:
        """A new topic takes a moment until all brokers know it."""
        while (found := self.describe(deadline)) is None:
            if _time_left(deadline) <= _POLL_SECONDS:
                raise TransientError(f"the topic {self._config.topic} is made, and isn't there yet")
            self._client.poll(_POLL_SECONDS)
        return found

    def _settings(self, deadline: float) -> dict[str, str] | None:
        asked = self._client.describe_configs(
            [ConfigResource(ResourceType.TOPIC, self._config.topic)], request_timeout=_time_left(deadline)
        )
        try:
            found = self._answer(next(iter(asked.values())), deadline)
        except (KafkaException, TransientError):
            return None  # not everybody may see them
        return {name: str(entry.value) for name, entry in found.items() if entry.value is not None}

    def _check_pending(self, deadline: float, cause: KafkaException | None = None) -> None:
        """A HeadwaterError with the true cause as soon as no answer is to be expected."""
        self._client.poll(_POLL_SECONDS)  # the cause of a failure comes this way only
        trouble = self._errors.last
        if trouble is not None and trouble.is_permanent:
            raise TerminalError(f"{self._servers}: {trouble.words}") from cause
        if time.monotonic() > deadline or self._errors.has_no_answer or self._is_cancelled:
            raise TransientError(self._errors.explain(f"{self._servers} gives no answer")) from cause

    def _answer(self, asked: Future[T], deadline: float) -> T:
        """The answer to a request; a HeadwaterError where there is none."""
        self._errors.clear()
        while not asked.done():
            self._check_pending(deadline)
        try:
            return asked.result()
        except KafkaException as e:
            self._client.poll(0)
            if e.args[0].code() in {KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN}:
                raise TransientError(self._errors.explain(f"{self._servers} gives no answer")) from e
            raise

    def _describe_refusal(self, error: KafkaError, what: str) -> HeadwaterError:
        if describe_error(error).cause == AUTHORIZATION:
            return TerminalError(describe_missing_right(self._config, what))
        return TransientError(f"the topic {self._config.topic}: {error.str()}")


def describe_missing_right(config: KafkaConfig, what: str) -> str:
    """Words for a right that is missing."""
    operations = {"write to": ("Write", "Describe"), "make": ("Create",)}.get(what, ("Describe",))
    grant = " ".join(f"--operation {operation}" for operation in operations)
    return (
        f"no right to {what} the topic {config.topic}: kafka-acls.sh --bootstrap-server {config.bootstrap_servers} "
        f"--add --allow-principal User:{config.producer.get('sasl.username', '<name>')} {grant} --topic {config.topic}"
    )


def oauth(config: KafkaConfig) -> dict[str, Any]:
    """The callback for OAUTHBEARER, where one is named."""
    if config.oauth_token is None:
        return {}
    try:
        return {"oauth_cb": plugins.load("headwater.oauth", config.oauth_token)}
    except PluginError as e:
        raise PluginError(f"{e} (by oauth.token)") from e


def _time_left(deadline: float) -> float:
    return max(_POLL_SECONDS, deadline - time.monotonic())
