"""What the listener bus sees: senders one after the other, and what has to be known of the cluster before each."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import closing, suppress
from functools import partial
from typing import Final

from headwater.config import read_config, read_usable_config
from headwater.errors import ConfigurationError, HeadwaterError, PluginError, TerminalError, TransientError
from headwater.publishers.kafka.cluster import KafkaCluster, KafkaTopic, describe_missing_right
from headwater.publishers.kafka.config import KafkaConfig, explain_refusal, without_wrong_properties
from headwater.publishers.kafka.errors import AUTHORIZATION, TOO_LARGE, ErrorTracker
from headwater.publishers.kafka.schemas import make_schema_framing
from headwater.publishers.kafka.sender import KafkaSender, SendFailure, StoppedError
from headwater.spi import WRONG_KEY, CheckResult, ListenerContext, RecordBatch, RefusedRecordError, SpoolPosition

_LOG: Final = logging.getLogger(__name__)
_START_SECONDS: Final = 1.0
"""Nobody is kept waiting longer for a cluster, which may take the next as long as it needs: the job may be ending."""
_ASK_SECONDS: Final = 20.0
_OBSTACLE_SECONDS: Final = 5.0
_CLOSE_SHARE: Final = 0.7


class PinnedCluster:
    """The cluster that a driver writes to: an address can come to belong to another one."""

    def __init__(self) -> None:
        self.cluster: str | None = None


class KafkaFactory:
    """The entry point `kafka`."""

    def __init__(self) -> None:
        self._pinned = PinnedCluster()

    def create(self, context: ListenerContext) -> KafkaListener:
        report = partial(context.report_problem, WRONG_KEY)
        values = without_wrong_properties(context.configuration, report, shown=context.prefix)
        config = read_usable_config(KafkaConfig, values, report, shown=context.prefix)
        try:
            KafkaCluster(config, ErrorTracker(context.report_problem, config.without_secrets)).close()
            make_schema_framing(config)
        except ValueError as e:
            raise ConfigurationError(f"{context.prefix}producer: {explain_refusal(str(e))}") from e
        except (ConfigurationError, PluginError) as e:
            raise ConfigurationError(f"{context.prefix}{config.without_secrets(str(e))}") from e
        return KafkaListener(config, context, self._pinned)

    def diagnose(self, context: ListenerContext) -> Iterator[CheckResult]:
        """For `headwater doctor`."""
        from headwater.publishers.kafka.checks import check_kafka  # noqa: PLC0415 - no driver needs it

        return check_kafka(read_config(KafkaConfig, context.configuration, shown=context.prefix), context)


class KafkaListener:
    """Use `KafkaFactory`."""

    def __init__(self, config: KafkaConfig, context: ListenerContext, pinned: PinnedCluster) -> None:
        self._config = config
        self._context = context
        self._pinned = pinned
        self._topic_request: Future[KafkaTopic] | None = None
        self._cluster: KafkaCluster | None = None
        self._errors = ErrorTracker(context.report_problem, config.without_secrets)
        self._sender: KafkaSender | None = None
        self._last_position: SpoolPosition | None = None
        self._acked_position: SpoolPosition | None = None
        self._obstacle: SpoolPosition | None = None
        """The first record that was refused: nothing behind it is sent before it is in."""
        self._one_by_one = False

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        self._last_position = batch.end
        try:
            sender = self._sender or self._start_sender()
            with suppress(StoppedError):  # why is heard below
                self._send(batch, sender)
            sender.serve(0)
            return self._acknowledge(sender)
        except BaseException:
            self._drop_sender()  # all above the answer comes again, to another one
            raise

    def flush(self, timeout: float) -> SpoolPosition | None:
        sender = self._sender
        if sender is None:
            return self._acked_position
        try:
            sender.serve(timeout)
            return self._acknowledge(sender)
        except BaseException:
            self._drop_sender()
            raise

    def close(self, timeout: float) -> bool:
        try:
            self.flush(_CLOSE_SHARE * timeout)  # letting go of a client takes a moment too
        except HeadwaterError as e:
            _LOG.debug("at the end: %s", e)
        self._drop_sender()
        if self._topic_request is not None:
            self._topic_request.cancel()
        if self._cluster is not None:
            self._cluster.cancel()
        return self._acked_position == self._last_position

    def _start_sender(self) -> KafkaSender:
        """A sender, once the cluster has said what has to be known of it."""
        topic = self._topic()
        if self._pinned.cluster is None:
            self._pinned.cluster = topic.cluster
            self._warn_of_settings(topic)
        self._sender = KafkaSender(
            self._config,
            topic,
            make_schema_framing(self._config),
            ErrorTracker(self._context.report_problem, self._config.without_secrets),
            acked_position=self._acked_position,
            observe=self._context.clock.observe,
            one_by_one=self._one_by_one,
        )
        return self._sender

    def _topic(self) -> KafkaTopic:
        if self._topic_request is None:
            self._topic_request = self._context.executor.submit(self._ask)
        try:
            topic = self._topic_request.result(_START_SECONDS)
        except NotYet as e:
            words = f"{self._config.bootstrap_servers} hasn't answered yet"
            raise TransientError(self._errors.explain(words)) from e
        except BaseException:
            self._topic_request = None
            raise
        self._topic_request = self._cluster = None
        return topic

    def _ask(self) -> KafkaTopic:
        with closing(KafkaCluster(self._config, self._errors)) as cluster:
            self._cluster = cluster
            return cluster.topic(time.monotonic() + _ASK_SECONDS, self._pinned.cluster)

    def _warn_of_settings(self, topic: KafkaTopic) -> None:
        """What is there was made by somebody who may not know what matters here."""
        for name, wanted in (("message.timestamp.type", "LogAppendTime"), ("cleanup.policy", "delete")):
            current = (topic.settings or {}).get(name, wanted)
            if current != wanted:
                _LOG.warning(
                    "the topic %s has %s=%s, where %s is needed: kafka-configs.sh --bootstrap-server %s --alter "
                    "--entity-type topics --entity-name %s --add-config %s=%s",
                    topic.name,
                    name,
                    current,
                    wanted,
                    self._config.bootstrap_servers,
                    topic.name,
                    name,
                    wanted,
                )

    def _send(self, batch: RecordBatch, sender: KafkaSender) -> None:
        for record in batch:
            sender.send(record)
            if self._obstacle is not None and record.position >= self._obstacle:
                self._wait_for_obstacle(sender)

    def _wait_for_obstacle(self, sender: KafkaSender) -> None:
        """Wait until what was refused is in; nothing is sent behind it before."""
        sender.serve(_OBSTACLE_SECONDS)
        self._raise_failure(sender)
        if not sender.is_all_acked:
            raise TransientError("what was refused before isn't acknowledged yet")
        self._obstacle = None

    def _acknowledge(self, sender: KafkaSender) -> SpoolPosition | None:
        """What is acknowledged counts only once it was answered: where something is raised instead, the bus knows
        nothing of it, and hands it over again."""
        self._raise_failure(sender)
        self._acked_position = sender.acked_position
        return self._acked_position

    def _raise_failure(self, sender: KafkaSender) -> None:
        if sender.failure is not None:
            raise self._describe_failure(sender.failure, sender.topic)

    def _describe_failure(self, failure: SendFailure, topic: KafkaTopic) -> HeadwaterError:
        """A record that the topic has no room for is refused for ever, once it is sure that it is this one: it is over
        the topic's limit, or was refused before, alone."""
        cause, words = failure.problem
        position, before = failure.position, self._obstacle
        if position is not None:
            self._obstacle = position
        if cause == TOO_LARGE:
            self._one_by_one = topic.max_message_bytes is None
            words = f"{words}: {self._size_advice(topic, failure.size)}"
            is_over = topic.max_message_bytes is not None and failure.size > topic.max_message_bytes
            if position is not None and (is_over or position == before):
                self._obstacle = None
                return RefusedRecordError(f"{topic.name}: {words}", position)
        if cause == AUTHORIZATION:
            return TerminalError(describe_missing_right(self._config, "write to"))
        return TransientError(f"{topic.name}: {words}")

    def _size_advice(self, topic: KafkaTopic, size: int) -> str:
        limit = "" if topic.max_message_bytes is None else f", and {topic.max_message_bytes} is the topic's limit"
        return (
            f"an event of {size} bytes{limit}; so that the topic takes the next one: kafka-configs.sh "
            f"--bootstrap-server {self._config.bootstrap_servers} --alter --entity-type topics --entity-name "
            f"{topic.name} --add-config max.message.bytes=1048588"
        )

    def _drop_sender(self) -> None:
        sender, self._sender = self._sender, None
        if sender is not None:
            sender.drop()
