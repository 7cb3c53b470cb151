"""What the listener bus sees: senders one after the other, and what has to be known of the cluster before each."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from typing import Final

from headwater.config import read_config
from headwater.errors import ConfigurationError, HeadwaterError, PluginError, TransientError
from headwater.publishers.kafka.cluster import Cluster, Topic
from headwater.publishers.kafka.config import KafkaConfig
from headwater.publishers.kafka.schemas import schemas_for
from headwater.publishers.kafka.sender import Failure, Sender, StoppedError
from headwater.publishers.kafka.troubles import Troubles
from headwater.publishers.kafka.words import TOO_LARGE
from headwater.spi import Batch, Finding, ListenerContext, Position

_LOG: Final = logging.getLogger(__name__)
_BEGIN_SECONDS: Final = 1.0
"""Nobody is kept waiting longer for a cluster, which may take the next as long as it needs: the job may be ending."""
_ASK_SECONDS: Final = 20.0
_OBSTACLE_SECONDS: Final = 5.0
_CLOSE_SHARE: Final = 0.7


class Pin:
    """The cluster that a driver writes to: an address can come to belong to another one."""

    def __init__(self) -> None:
        self.cluster: str | None = None


class KafkaFactory:
    """The entry point `kafka`."""

    def __init__(self) -> None:
        self._pin = Pin()

    def create(self, context: ListenerContext) -> KafkaListener:
        config = read_config(KafkaConfig, context.configuration, shown=context.prefix)
        try:
            Cluster(config, Troubles(context.trouble, config.without_secrets))
            schemas_for(config)
        except ValueError as e:
            raise ConfigurationError(f"{context.prefix}producer: {e}") from e
        except (ConfigurationError, PluginError) as e:
            raise ConfigurationError(f"{context.prefix}{config.without_secrets(str(e))}") from e
        return KafkaListener(config, context, self._pin)

    def examine(self, context: ListenerContext) -> Iterator[Finding]:
        """For `headwater doctor`."""
        from headwater.publishers.kafka.examining import examine  # noqa: PLC0415 - no driver needs it

        return examine(read_config(KafkaConfig, context.configuration, shown=context.prefix), context)


class KafkaListener:
    """Use `KafkaFactory`."""

    def __init__(self, config: KafkaConfig, context: ListenerContext, pin: Pin) -> None:
        self._config = config
        self._context = context
        self._pin = pin
        self._asked: Future[Topic] | None = None
        self._cluster: Cluster | None = None
        self._troubles = Troubles(context.trouble, config.without_secrets)
        self._sender: Sender | None = None
        self._handed: Position | None = None
        self._answer: Position | None = None
        self._obstacle: Position | None = None
        """The first record that was refused: nothing behind it is sent before it is in."""
        self._one_by_one = False

    def handle(self, batch: Batch) -> Position | None:
        self._handed = batch.end
        try:
            sender = self._sender or self._begun()
            with suppress(StoppedError):  # why is heard below
                self._send(batch, sender)
            sender.serve(0)
            return self._answered(sender)
        except BaseException:
            self._drop()  # all above the answer comes again, to another one
            raise

    def flush(self, timeout: float) -> Position | None:
        sender = self._sender
        if sender is None:
            return self._answer
        try:
            sender.serve(timeout)
            return self._answered(sender)
        except BaseException:
            self._drop()
            raise

    def close(self, timeout: float) -> bool:
        try:
            self.flush(_CLOSE_SHARE * timeout)  # letting go of a client takes a moment too
        except HeadwaterError as e:
            _LOG.debug("at the end: %s", e)
        self._drop()
        if self._cluster is not None:
            self._cluster.give_up()
        return self._answer == self._handed

    def _begun(self) -> Sender:
        """A sender, once the cluster has said what has to be known of it."""
        topic = self._topic()
        if self._pin.cluster is None:
            self._pin.cluster = topic.cluster
            self._look_at(topic)
        self._sender = Sender(
            self._config,
            topic,
            schemas_for(self._config),
            Troubles(self._context.trouble, self._config.without_secrets),
            answer=self._answer,
            observe=self._context.clock.observe,
            one_by_one=self._one_by_one,
        )
        return self._sender

    def _topic(self) -> Topic:
        if self._asked is None:
            self._asked = self._context.executor.submit(self._ask)
        try:
            topic = self._asked.result(_BEGIN_SECONDS)
        except NotYet as e:
            words = f"{self._config.bootstrap_servers} hasn't answered yet"
            raise TransientError(self._troubles.explain(words)) from e
        except BaseException:
            self._asked = None
            raise
        self._asked = self._cluster = None
        return topic

    def _ask(self) -> Topic:
        self._cluster = Cluster(self._config, self._troubles)
        return self._cluster.topic(time.monotonic() + _ASK_SECONDS, self._pin.cluster)

    def _look_at(self, topic: Topic) -> None:
        """What is there was made by somebody who may not know what matters here."""
        for name, wanted in (("message.timestamp.type", "LogAppendTime"), ("cleanup.policy", "delete")):
            told = (topic.settings or {}).get(name, wanted)
            if told != wanted:
                _LOG.warning(
                    "the topic %s has %s=%s, where %s is needed: kafka-configs.sh --bootstrap-server %s --alter "
                    "--entity-type topics --entity-name %s --add-config %s=%s",
                    topic.name,
                    name,
                    told,
                    wanted,
                    self._config.bootstrap_servers,
                    topic.name,
                    name,
                    wanted,
                )

    def _send(self, batch: Batch, sender: Sender) -> None:
        for record in batch:
            sender.send(record)
            if self._obstacle is not None and record.position >= self._obstacle:
                self._overcome(sender)

    def _overcome(self, sender: Sender) -> None:
        """Wait until what was refused is in; nothing is sent behind it before."""
        sender.serve(_OBSTACLE_SECONDS)
        self._raise_failure(sender)
        if not sender.is_through:
            raise TransientError("what was refused before isn't acknowledged yet")
        self._obstacle = None

    def _answered(self, sender: Sender) -> Position | None:
        """What is acknowledged counts only once it was answered: where something is raised instead, the bus knows
        nothing of it, and hands it over again."""
        self._raise_failure(sender)
        self._answer = sender.answer
        return self._answer

    def _raise_failure(self, sender: Sender) -> None:
        if sender.failure is not None:
            raise self._error(sender.failure, sender.topic)

    def _error(self, failure: Failure, topic: Topic) -> TransientError:
        cause, words = failure.trouble
        if failure.position is not None:
            self._obstacle = failure.position
        if cause == TOO_LARGE:
            self._one_by_one = topic.longest is None
            words = f"{words}: {self._larger(topic, failure.size)}"
        return TransientError(f"{topic.name}: {words}")

    def _larger(self, topic: Topic, size: int) -> str:
        limit = "" if topic.longest is None else f", and {topic.longest} is the topic's limit"
        return (
            f"an event of {size} bytes{limit}; it and what comes behind it wait until that is more: kafka-configs.sh "
            f"--bootstrap-server {self._config.bootstrap_servers} --alter --entity-type topics --entity-name "
            f"{topic.name} --add-config max.message.bytes=1048588"
        )

    def _drop(self) -> None:
        sender, self._sender = self._sender, None
        if sender is not None:
            sender.drop()
