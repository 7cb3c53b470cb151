"""How proposals go to DataHub: to its service, to its Kafka topic, or into files. All calls block their thread.

A TransientError means that it is to be tried again, RefusedContentError that one of the proposals will never be
accepted, and any other TerminalError that somebody has to change something.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import requests
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import TopicMetadata
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import SerializationError
from datahub.configuration.common import ConfigurationError as DataHubConfigurationError
from datahub.configuration.common import OperationalError
from datahub.configuration.kafka import KafkaProducerConnectionConfig
from datahub.emitter.kafka_emitter import MCP_KEY, DatahubKafkaEmitter, KafkaEmitterConfig, MessageTooLargeError
from datahub.emitter.rest_emitter import DataHubRestEmitter, EmitMode
from datahub.ingestion.sink.file import write_metadata_file
from pydantic import ValidationError

from headwater.errors import ConfigurationError, HeadwaterError, TerminalError, TransientError
from headwater.forwarders.datahub.options import DataHubConfig
from headwater.forwarders.datahub.proposals import Proposal, independent_batches
from headwater.forwarders.http_delivery import BusyTargetError, RefusedContentError, response_error
from headwater.forwarders.secret_filter import SecretFilter
from headwater.spi import CheckResult

MOST_AT_ONCE: Final = 200
"""So many proposals are in a request at most, as many as the SDK puts into one."""
_NO_SPACE: Final = "the file with proposals can't be written"
_FAULTS_OF_REQUESTS: Final = (
    requests.exceptions.InvalidURL,
    requests.exceptions.InvalidSchema,
    requests.exceptions.MissingSchema,
    requests.exceptions.TooManyRedirects,
)
"""What trying again can't mend."""
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


class DataHubTarget(Protocol):
    """Where proposals go."""

    def send(self, proposals: Sequence[Proposal], name: str, is_wanted: Callable[[], bool]) -> None:
        """Send them in order, and return when the target has them. `name` is one that the same events have again.
        Between requests it ends if they aren't wanted any more."""
        ...

    def check(self) -> Iterator[CheckResult]:
        """Check the target without writing to it."""
        ...

    def close(self) -> None: ...


def open_target(config: DataHubConfig) -> DataHubTarget:
    """Return the target that the options name. Nothing is asked of it yet."""
    if config.url is not None:
        return RestTarget(config)
    return KafkaTarget(config) if config.bootstrap_servers is not None else DirectoryTarget(config)


class RestTarget:
    """DataHub's metadata service, by its REST interface."""

    def __init__(self, config: DataHubConfig) -> None:
        self._url: Final = (config.url or "").rstrip("/")
        self._mode: Final = EmitMode.ASYNC if config.mode == "async" else EmitMode.SYNC_PRIMARY
        try:
            self._emitter: Final = DataHubRestEmitter(
                self._url,
                token=config.token,
                timeout_sec=config.request_timeout,
                retry_max_times=0,  # who calls waits and tries again, and knows how long
                extra_headers=dict(config.header),
                ca_certificate_path=str(config.ca) if config.ca else None,
                openapi_ingestion=False,  # it would change the order, and write what is only to be created
            )
        except DataHubConfigurationError as e:
            raise ConfigurationError(f"url: {e}") from e
        self._secrets: Final = SecretFilter([config.token, *config.header.values()])
        session = self._emitter.session
        if config.token or any(name.lower() == "authorization" for name in config.header):
            session.auth = _keep_authorization
        session.max_redirects = 0  # behind one is a page for logging in, which answers 200
        session.hooks["response"].append(self._judge)

    def send(self, proposals: Sequence[Proposal], name: str, is_wanted: Callable[[], bool]) -> None:  # noqa: ARG002
        for batch in independent_batches(proposals, MOST_AT_ONCE):
            if not is_wanted():
                return
            self._call(partial(self._emitter.emit_mcps, batch, emit_mode=self._mode))

    def check(self) -> Iterator[CheckResult]:
        version = self._call(lambda: self._emitter.fetch_server_config().service_version)
        shown = self._secrets.hide(str(version or "of an unknown version"))
        yield CheckResult.ok("service", f"{self._url} answers: DataHub {shown}")
        yield CheckResult.ok("user", f"it knows us as {self._secrets.hide(self._call(self._user))}")
        yield CheckResult.warning(
            "rights",
            "whether this user may write shows at the first event: DataHub tells nobody without writing",
            "give it the privilege Edit Entity, or the role Editor",
        )

    def close(self) -> None:
        self._emitter.close()

    def _call(self, question: Callable[[], Any]) -> Any:
        with self._secrets.hidden():
            return with_errors_of_requests(question, self._url)

    def _user(self) -> str:
        question = {"query": "{ me { corpUser { username } } }"}
        answer = self._emitter.session.post(f"{self._url}/api/graphql", json=question).json()
        try:
            return str(answer["data"]["me"]["corpUser"]["username"])
        except (KeyError, TypeError):
            return "its name isn't told"

    def _judge(self, response: requests.Response, *_: object, **__: object) -> None:
        """Raise the error that an answer is. A success that isn't JSON comes from somebody else."""
        if response.is_redirect:
            return
        retry_after = response.headers.get("Retry-After")
        body = self._secrets.hide(message_of(response))
        error = response_error(self._url, response.status_code, retry_after=retry_after, body=body)
        if error is not None:
            raise error
        try:
            response.json()
        except ValueError as e:
            raise BusyTargetError(f"{self._url} answers something that isn't DataHub's: is a proxy before it?") from e


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


class DirectoryTarget:
    """Files in a directory, in the format of the SDK's own files. Their names are in the order of their events."""

    def __init__(self, config: DataHubConfig) -> None:
        self._directory: Final = config.directory or Path()

    def send(self, proposals: Sequence[Proposal], name: str, is_wanted: Callable[[], bool]) -> None:  # noqa: ARG002
        unfinished = self._directory / f".{name}"
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            write_metadata_file(unfinished, proposals)
            _sync(unfinished)
            unfinished.replace(self._directory / f"{name}.json")
        except PermissionError as e:
            raise TerminalError(f"{_NO_SPACE}: {e}: give this user the right to write there") from e
        except OSError as e:
            raise TransientError(f"{_NO_SPACE}: {e}") from e

    def check(self) -> Iterator[CheckResult]:
        there = next(each for each in (self._directory, *self._directory.absolute().parents) if each.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            yield CheckResult.error(
                "directory", f"{there} can't be written to", "give this user the right to write there"
            )
        else:
            yield CheckResult.ok("directory", f"{self._directory} can be written to")

    def close(self) -> None:
        """Files are closed already."""


def _keep_authorization(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Let a request have the header that it has. Without an `auth` requests takes one out of ~/.netrc in its place."""
    return request


def with_errors_of_requests(call: Callable[[], Any], url: str) -> Any:
    """Call the SDK, and raise our own error for its own."""
    try:
        return call()
    except HeadwaterError:
        raise
    except (OperationalError, requests.RequestException) as e:
        cause = e.__cause__ if isinstance(e, OperationalError) else e
        if isinstance(cause, _FAULTS_OF_REQUESTS):
            raise TerminalError(f"{url}: {cause}: correct the URL") from e
        if isinstance(cause, requests.exceptions.SSLError):
            raise TerminalError(f"{url}: {cause}: write ca, or correct the URL") from e
        raise TransientError(f"{url} can't be reached: {cause}") from e
    except DataHubConfigurationError as e:
        raise TerminalError(f"{url}: {e}") from e


def message_of(response: requests.Response) -> str:
    """Return what the service says is wrong, without the trace of its stack."""
    if response.ok:
        return ""
    try:
        return str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        return response.text


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


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
