"""What is asked of a cluster before anything is sent to it: which one it is, if it has the topic, what that takes."""

from __future__ import annotations

import shlex
import time
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, NewTopic, ResourceType

from headwater import plugins
from headwater.errors import HeadwaterError, PluginError, TerminalError, TransientError
from headwater.publishers.kafka.config import KafkaConfig
from headwater.publishers.kafka.troubles import Troubles
from headwater.publishers.kafka.words import AUTHORIZATION, CLUSTER, Trouble, trouble_of

T = TypeVar("T")
_SLICE: Final = 0.02
_ABSENT: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})


@dataclass(frozen=True)
class Topic:
    """A topic as it is now."""

    name: str
    cluster: str
    partitions: int
    may_write: bool = True
    settings: dict[str, str] | None = None
    """None where this client may not see them."""
    replicas: int = 1
    """Of each partition, at least."""

    @property
    def longest(self) -> int | None:
        """How many bytes it takes in one batch."""
        told = (self.settings or {}).get("max.message.bytes", "")
        return int(told) if told.isdigit() else None


class Cluster:
    """Asks; for one thread. Nothing waits longer than it is told to, or once it is known that waiting won't help."""

    def __init__(self, config: KafkaConfig, troubles: Troubles) -> None:
        """A ValueError where librdkafka doesn't like the settings."""
        self._config = config
        self._troubles = troubles
        self._is_given_up = False
        try:
            self._client = AdminClient({**config.client(), **oauth(config), **troubles.callbacks()})
        except KafkaException as e:
            raise ValueError(config.without_secrets(e.args[0].str())) from None

    def give_up(self) -> None:
        """Nobody waits for an answer any more. From any thread."""
        self._is_given_up = True

    def topic(self, deadline: float, pinned: str | None = None) -> Topic:
        """The topic, made if there is none and that is allowed. A HeadwaterError says why it can't be had: a
        TerminalError where somebody has to see to it."""
        cluster = self.id(deadline)
        self._refuse_another(cluster, pinned)
        found = self.look(cluster, deadline)
        if found is None:
            self._make(deadline)
            found = self._await(cluster, deadline)
        if not found.may_write:
            raise TerminalError(self.no_right("write to"))
        return found

    def id(self, deadline: float) -> str:
        """Which cluster answers."""
        return str(self._answer(self._client.describe_cluster(request_timeout=_left(deadline)), deadline).cluster_id)

    def look(self, cluster: str, deadline: float) -> Topic | None:
        """The topic as it is; None where there is none."""
        name = self._config.topic
        asked = self._client.describe_topics(
            TopicCollection([name]), request_timeout=_left(deadline), include_authorized_operations=True
        )
        try:
            described = self._answer(asked[name], deadline)
        except KafkaException as e:
            if e.args[0].code() in _ABSENT:
                return None
            raise self._refused(e, "see") from e
        allowed = described.authorized_operations
        may_write = not allowed or AclOperation.WRITE in allowed
        replicas = min((len(each.replicas) for each in described.partitions), default=1)
        return Topic(name, cluster, len(described.partitions), may_write, self._settings(deadline), replicas)

    def no_right(self, what: str) -> str:
        """Words for a right that is missing."""
        topic, operations = self._config.topic, {"write to": ("Write", "Describe")}.get(what, ("Describe",))
        if what == "make":
            operations = ("Create",)
        grant = " ".join(f"--operation {each}" for each in operations)
        return (
            f"no right to {what} the topic {topic}: kafka-acls.sh --bootstrap-server {self._at} --add "
            f"--allow-principal User:{self._config.producer.get('sasl.username', '<name>')} {grant} --topic {topic}"
        )

    def command(self) -> str:
        """What makes the topic."""
        config, settings = self._config, self._config.topic_settings()
        replicas = f" --replication-factor {config.topic_replication}" if config.topic_replication > 0 else ""
        return (
            f"kafka-topics.sh --bootstrap-server {self._at} --create --topic {config.topic} "
            f"--partitions {config.topic_partitions}{replicas}"
            + "".join(f" --config {shlex.quote(f'{key}={value}')}" for key, value in settings.items())
        )

    @property
    def _at(self) -> str:
        return self._config.bootstrap_servers

    def _refuse_another(self, cluster: str, pinned: str | None) -> None:
        wanted = self._config.cluster_id or pinned
        if wanted in {None, cluster}:
            return
        whose = "cluster.id names" if self._config.cluster_id else "this driver has been writing to"
        words = (
            f"another cluster, {cluster}, answers at {self._at}: nothing is sent to it, because {whose} {wanted}; "
            "events wait in the spool until that one is back"
        )
        self._troubles.note(Trouble(CLUSTER, words))
        raise TransientError(words)

    def _make(self, deadline: float) -> None:
        config = self._config
        absent = f"there is no topic {config.topic} at {self._at}"
        if not config.topic_create:
            raise TerminalError(f"{absent}, and topic.create is false: {self.command()}")
        new = NewTopic(config.topic, config.topic_partitions, config.topic_replication, config=config.topic_settings())
        asked = self._client.create_topics([new], request_timeout=_left(deadline))
        try:
            self._answer(asked[config.topic], deadline)
        except KafkaException as e:
            error = e.args[0]
            if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return
            if trouble_of(error).cause == AUTHORIZATION:
                raise TerminalError(f"{absent}, and {self.no_right('make')}, or {self.command()}") from e
            if error.retriable():
                raise TransientError(f"{absent}, and it can't be made now: {error.str()}") from e
            raise TerminalError(f"{absent}, and it can't be made: {error.str()}: {self.command()}") from e

    def _await(self, cluster: str, deadline: float) -> Topic:
        """A new topic takes a moment until all brokers know it."""
        while (found := self.look(cluster, deadline)) is None:
            if _left(deadline) <= _SLICE:
                raise TransientError(f"the topic {self._config.topic} is made, and isn't there yet")
            self._client.poll(_SLICE)
        return found

    def _settings(self, deadline: float) -> dict[str, str] | None:
        asked = self._client.describe_configs(
            [ConfigResource(ResourceType.TOPIC, self._config.topic)], request_timeout=_left(deadline)
        )
        try:
            told = self._answer(next(iter(asked.values())), deadline)
        except (KafkaException, TransientError):
            return None  # not everybody may see them
        return {name: str(entry.value) for name, entry in told.items() if entry.value is not None}

    def _answer(self, asked: Future[T], deadline: float) -> T:
        """The answer; a HeadwaterError with the true cause as soon as there is none to be expected."""
        self._troubles.clear()
        while not asked.done():
            self._client.poll(_SLICE)  # the cause of a failure comes this way only
            trouble = self._troubles.last
            if trouble is not None and trouble.is_hopeless:
                raise TerminalError(f"{self._at}: {trouble.words}")
            if time.monotonic() > deadline or self._troubles.nobody_answers or self._is_given_up:
                raise TransientError(self._troubles.explain(f"{self._at} gives no answer"))
        try:
            return asked.result()
        except KafkaException as e:
            self._client.poll(0)
            if e.args[0].code() in {KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN}:
                raise TransientError(self._troubles.explain(f"{self._at} gives no answer")) from e
            raise

    def _refused(self, error: KafkaException, what: str) -> HeadwaterError:
        told: KafkaError = error.args[0]
        if trouble_of(told).cause == AUTHORIZATION:
            return TerminalError(self.no_right(what))
        return TransientError(f"the topic {self._config.topic}: {told.str()}")


def oauth(config: KafkaConfig) -> dict[str, Any]:
    """The callback for OAUTHBEARER, where one is named."""
    if config.oauth_token is None:
        return {}
    try:
        return {"oauth_cb": plugins.load("headwater.oauth", config.oauth_token)}
    except PluginError as e:
        raise PluginError(f"oauth.token: {e}") from e


def _left(deadline: float) -> float:
    return max(_SLICE, deadline - time.monotonic())
