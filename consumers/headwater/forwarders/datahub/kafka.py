"""DataHub's topic of proposals, in Avro by its schema registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import TopicMetadata
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import SerializationError
from datahub.configuration.kafka import KafkaProducerConnectionConfig
from datahub.emitter.kafka_emitter import MCP_KEY, DatahubKafkaEmitter, KafkaEmitterConfig, MessageTooLargeError
from pydantic import ValidationError

from headwater.errors import ConfigurationError, HeadwaterError, TerminalError, TransientError
from headwater.forwarders.datahub.options import DataHubConfig
from headwater.forwarders.datahub.proposals import Proposal
from headwater.forwarders.http_delivery import RefusedContentError, response_error
from headwater.forwarders.secret_filter import SecretFilter
from headwater.spi import CheckResult

_REFUSALS_OF_BROKERS: Final = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD}
_NUMBERS_OF_REGISTRY: Final = frozenset(
    {"timeout", "max.retries", "retries.wait.ms", "retries.max.wait.ms", "cache.capacity", "cache.latest.ttl.sec"}
)
_RIGHTS: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError._AUTHENTICATION,  # noqa: SLF001 - librdkafka's own errors have such names
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
}


class KafkaTarget:
    """DataHub's topic of proposals, in Avro by its schema registry."""

    def __init__(self, config: DataHubConfig) -> None:
        self._topic: Final = config.topic
        self._timeout: Final = config.request_timeout
        self._secrets: Final = SecretFilter.of_settings({**config.schema_registry, **config.producer})
        registry = registry_settings(config.schema_registry, self._timeout)
        try:
            connection = KafkaProducerConnectionConfig(
                bootstrap=config.bootstrap_servers or "",
                schema_registry_url=config.schema_registry["url"],
                schema_registry_config=registry,
                # Once the SDK's flush has ended nothing may go out later, behind what is sent then.
                producer_config={
                    "enable.idempotence": "true",
                    "linger.ms": "5",
                    **config.producer,
                    "message.timeout.ms": str(int(1000 * config.request_timeout * 0.9)),
                },
            )
            routes = {MCP_KEY: config.topic}
            self._emitter: Final = DatahubKafkaEmitter(
                KafkaEmitterConfig(
                    connection=connection, topic_routes=routes, max_queue_full_block_seconds=config.request_timeout
                )
            )
        except (ValidationError, KafkaException, ValueError) as e:
            raise ConfigurationError(f"bootstrap.servers, producer or schema.registry: {e}") from e
        self._registry: Final = SchemaRegistryClient({"url": connection.schema_registry_url, **registry})
        self._was_reached = False

    def send(self, proposals: Sequence[Proposal], name: str, is_wanted: Callable[[], bool]) -> None:  # noqa: ARG002
        with self._secrets.hidden():
            if not self._was_reached:  # without a broker the first proposal would wait a minute for the cluster's id
                self._topics()
                self._was_reached = True
            try:
                self._send_together(proposals)
            except RefusedContentError:
                if len(proposals) == 1:
                    raise
                for proposal in proposals:  # a broker judges the size of what librdkafka sends together
                    self._send_together([proposal])

    def _send_together(self, proposals: Sequence[Proposal]) -> None:
        failures: list[KafkaError] = []

        def note(error: KafkaError | None, _: object) -> None:
            if error is not None:
                failures.append(error)

        try:
            for proposal in proposals:
                self._emitter.emit(proposal, note)
        except Exception as e:
            with suppress(Exception):
                self._emitter.flush()
            raise kafka_error(e, self._topic) from e
        left = self._emitter.flush_with_undelivered_count()
        if failures:
            raise kafka_error(KafkaException(failures[0]), self._topic)
        if left:
            raise TransientError(f"{left} proposals aren't on {self._topic} after {self._timeout} s")

    def check(self) -> Iterator[CheckResult]:
        with self._secrets.hidden():
            topics = self._topics()
        if self._topic not in topics:
            yield CheckResult.error(
                "topic", f"there is no topic {self._topic}", "start DataHub, or write another topic"
            )
            return
        yield CheckResult.ok("topic", f"{self._topic} has {len(topics[self._topic].partitions)} partitions")
        with self._secrets.hidden():
            try:
                subjects = self._registry.get_subjects()
            except Exception as e:
                raise kafka_error(e, self._topic) from e
        known = f"{self._topic}-value" in subjects
        yield CheckResult.ok("schema registry", "it knows the topic" if known else "it answers, without this topic yet")

    def close(self) -> None:
        self._emitter.close()

    def _topics(self) -> dict[str, TopicMetadata]:
        try:
            topics: dict[str, TopicMetadata] = (
                self._emitter.producers[MCP_KEY].list_topics(timeout=self._timeout).topics
            )
        except KafkaException as e:
            raise kafka_error(e, self._topic) from e
        return topics


def registry_settings(told: Mapping[str, str], timeout: float) -> dict[str, str | float]:
    """Return the settings of Confluent's client, without the URL. It takes numbers as numbers only."""
    rest = {key: float(text) if key in _NUMBERS_OF_REGISTRY else text for key, text in told.items() if key != "url"}
    return {"timeout": timeout, "max.retries": 0, **rest}


def kafka_error(error: Exception, topic: str) -> HeadwaterError:
    """Return our own error for one of the SDK, of librdkafka or of the schema registry's client."""
    if isinstance(error, MessageTooLargeError):
        return RefusedContentError(f"{topic}: {error}")
    if isinstance(error, SerializationError):
        return _registry_error(error.__context__ or error.__cause__ or error)
    if isinstance(error, SchemaRegistryError):
        return _registry_error(error)
    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
        return _broker_error(error.args[0], topic)
    if isinstance(error, BufferError):
        return TransientError(f"{topic} takes no more: {error}")
    return TransientError(f"{topic}: {type(error).__name__}: {error}")


def _broker_error(error: KafkaError, topic: str) -> HeadwaterError:
    if error.code() in _REFUSALS_OF_BROKERS:
        return RefusedContentError(f"{topic}: {error.str()}")
    if error.code() in _RIGHTS:
        return TerminalError(f"{topic}: {error.str()}: give this user the right to write to it, or correct its name")
    return TransientError(f"{topic}: {error.str()}")


def _registry_error(error: BaseException) -> HeadwaterError:
    status = error.http_status_code if isinstance(error, SchemaRegistryError) else None
    if status is None or status < 100:
        return TransientError(f"the schema registry can't be reached: {type(error).__name__}: {error}")
    found = response_error("the schema registry", status, body=str(error))
    if isinstance(found, RefusedContentError):
        return TerminalError(f"{found}: its schema of DataHub's topic is another one")
    return found or TransientError(f"the schema registry: {error}")
