"""The parts of the Kafka publisher that need no broker: its configuration, errors in words, the account of a sender."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import permutations

import pytest
from confluent_kafka import KafkaError

from headwater.config import read_config
from headwater.errors import ConfigurationError, TransientError
from headwater.publishers.kafka import KafkaConfig, KafkaFactory
from headwater.publishers.kafka.config import NAMES, describe_fault
from headwater.publishers.kafka.errors import ErrorTracker, describe_error
from headwater.publishers.kafka.sender import PendingRecords
from headwater.spi import SpoolPosition
from headwater.testing.examples import EXAMPLES
from headwater.testing.listeners import batch
from headwater.testing.memory import MemoryContext

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.fixture
def executor() -> Iterator[Executor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def config_of(**more: str) -> KafkaConfig:
    return read_config(KafkaConfig, {**NOWHERE, **more})


def test_settings_that_a_promise_hangs_on_are_refused_with_the_promise() -> None:
    for key, value, why in (
        ("acks", "1", "has to be all: an event counts as delivered when all in-sync replicas have it"),
        ("enable.idempotence", "false", "can turn the order of events round"),
        ("message.timeout.ms", "1000", "an event is tried until it is in"),
        ("partitioner", "murmur2", "events of one key keep their partition"),
        ("transactional.id", "x", "known by its id"),
        ("bootstrap.servers", "x", "without producer."),
    ):
        with pytest.raises(ConfigurationError, match=why):
            config_of(**{f"producer.{key}": value})


def test_the_same_settings_may_be_written_out() -> None:
    settings = config_of(**{"producer.acks": "-1", "producer.enable.idempotence": "TRUE"}).sender(None)
    assert settings["acks"] == "all"
    assert settings["enable.idempotence"] == "true"


def test_everything_else_reaches_librdkafka_and_wins_over_the_defaults() -> None:
    given = {"compression.type": "zstd", "sasl.username": "me", "linger.ms": "50", "batch.size": "77"}
    settings = config_of(**{f"producer.{key}": value for key, value in given.items()}).sender(1000)
    assert {key: settings[key] for key in given} == given


def test_batches_fit_into_what_the_topic_takes() -> None:
    assert config_of().sender(20_000)["batch.size"] == "20000"
    assert config_of().sender(50_000_000)["batch.size"] == "1000000"
    assert "batch.size" not in config_of().sender(None)
    assert config_of().sender(None, one_by_one=True)["batch.num.messages"] == "1"


def test_a_new_topic_has_the_brokers_time_and_loses_nothing_to_compaction() -> None:
    settings = config_of(**{"topic.retention": "2 days", "topic.config.min.insync.replicas": "2"}).topic_settings()
    assert settings == {
        "message.timestamp.type": "LogAppendTime",
        "cleanup.policy": "delete",
        "retention.ms": "172800000",
        "min.insync.replicas": "2",
    }


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("bootstrap.servers", " , ", "write host:port of a broker"),
        ("topic", "no spaces", "up to 249 letters, digits"),
        ("topic.partitions", "0", "topic.partitions"),
        ("topic.replication", "0", "-1 for the brokers' default"),
        ("schema.registry.timeout", "3", "schema.registry.url"),
        ("topc", "x", "did you mean .*topic"),
        ("oauth.token", "nowhere.at:all", "no module nowhere"),
        ("producer.scurity.protocol", "SSL", "did you mean security.protocol"),
        ("producer.encryption", "on", "there is no property encryption of librdkafka"),
        ("producer.security.protocol", "TLS", "security.protocol"),
        ("producer.bootstrap.servers", "elsewhere:1", "write it without producer."),
    ],
)
def test_a_wrong_key_or_value_is_reported_by_its_name(executor: Executor, key: str, value: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why) as caught:
        KafkaFactory().create(MemoryContext("kafka", {**NOWHERE, key: value}, executor))
    assert "spark.headwater.kafka." in str(caught.value)


def test_a_wrong_key_that_sends_nothing_elsewhere_is_reported_and_no_more(executor: Executor) -> None:
    context = MemoryContext("kafka", {**NOWHERE, "producer.": "x", "clster.id": "c"}, executor)
    KafkaFactory().create(context)
    assert [detail.partition(";")[0] for _, detail in context.problems] == [
        "spark.headwater.kafka.producer. is a section, not a key: write spark.headwater.kafka.producer.<name>",
        "there is no key spark.headwater.kafka.clster.id: did you mean spark.headwater.kafka.cluster.id?",
    ]


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("linger.mss", "50", "there is no property linger.mss of librdkafka: did you mean linger.ms"),
        ("no.such.setting", "x", "there is no property no.such.setting of librdkafka: "),
        ("linger.ms", "soon", "librdkafka doesn't accept its value"),
        ("acks", "1", "has to be all: an event counts as delivered when all in-sync replicas have it"),
        ("transactional.id", "x", "can't be set: copies of an event are known by its id"),
    ],
)
def test_a_wrong_property_is_reported_left_out_and_no_more(executor: Executor, key: str, value: str, why: str) -> None:
    """Another property beside it counts, above all one that secures the connection."""
    right = {"producer.compression.type": "zstd", "producer.security.protocol": "sasl_ssl"}
    login = {"producer.sasl.mechanism": "PLAIN", "producer.sasl.username": "me", "producer.sasl.password": "pa55-w0rd"}
    context = MemoryContext("kafka", {**NOWHERE, **right, **login, f"producer.{key}": value}, executor)
    config = KafkaFactory().create(context)._config  # pyright: ignore[reportPrivateUsage]
    ((_, said),) = context.problems
    assert said.startswith("spark.headwater.kafka.producer.")
    assert why in said
    assert said.endswith("; what holds now is the default")
    assert {f"producer.{name}": text for name, text in config.producer.items()} == {**right, **login}


def test_all_names_that_are_offered_are_librdkafkas() -> None:
    unknown = {name: fault for name in NAMES if "no property" in (fault := describe_fault(name, "x", "") or "")}
    assert unknown == {}


@pytest.mark.slow
def test_where_a_broker_is_has_to_be_said(executor: Executor) -> None:
    with pytest.raises(ConfigurationError, match=r"kafka\.bootstrap\.servers: isn't there, and has to be"):
        KafkaFactory().create(MemoryContext("kafka", {}, executor))


def test_secrets_are_in_no_words(executor: Executor) -> None:
    secrets = {
        "producer.sasl.password": "pa55-w0rd",
        "producer.ssl.key.password": "k3y-w0rd",
        "schema.registry.basic.auth.user.info": "me:r3gistry",
    }
    wrong = {"producer.ssl.key.pem": "pem-s3cret", "producer.security.protocol": "SSL"}
    config = config_of(**secrets, **{"schema.registry.url": "http://127.0.0.1:1"})
    assert not [value for value in ("pa55-w0rd", "k3y-w0rd", "r3gistry") if value in repr(config)]
    assert config.without_secrets("librdkafka says pa55-w0rd") == "librdkafka says ***"
    with pytest.raises(ConfigurationError) as caught:
        KafkaFactory().create(MemoryContext("kafka", {**NOWHERE, **secrets, **wrong}, executor))
    assert "pem-s3cret" not in str(caught.value)


def test_causes_are_reported_with_advice() -> None:
    for code, cause, advice in (
        (KafkaError._AUTHENTICATION, "authentication", "producer.sasl.password"),
        (KafkaError._SSL, "tls", "producer.ssl.ca.location"),
        (KafkaError._RESOLVE, "resolve", "bootstrap.servers"),
        (KafkaError._TRANSPORT, "transport", "is a broker running there"),
        (KafkaError._BAD_MSG, "protocol", "producer.security.protocol"),
    ):
        reported = describe_error(KafkaError(code))
        assert reported.cause == cause
        assert advice in reported.words
    assert describe_error(KafkaError(KafkaError.KAFKA_STORAGE_ERROR)).cause == "kafka_storage_error"


def test_what_only_a_person_can_mend_stays_the_last_word() -> None:
    reported: list[tuple[str, str]] = []
    troubles = ErrorTracker(lambda cause, words: reported.append((cause, words)), lambda text: text)
    for code in (KafkaError._TRANSPORT, KafkaError._AUTHENTICATION, KafkaError._ALL_BROKERS_DOWN, KafkaError._FATAL):
        troubles.on_error(KafkaError(code))
    assert troubles.last is not None
    assert troubles.last.cause == "authentication"
    assert troubles.has_no_answer
    assert [cause for cause, _ in reported] == ["transport", "authentication"]


def test_the_answer_waits_for_all_before_it_in_whatever_order_they_are_acknowledged() -> None:
    positions = [SpoolPosition(each) for each in (3, 10, 11, 20)]
    for order in permutations(positions):
        pending = PendingRecords(None)
        for each in positions:
            pending.add(each)
        done: set[SpoolPosition] = set()
        for each in order:
            pending.acknowledge(each)
            done.add(each)
            through = [p for at, p in enumerate(positions) if done.issuperset(positions[: at + 1])]
            assert pending.acked_position == (through[-1] if through else None)
            assert len(pending) == len(positions) - len(done)


def test_nobody_is_kept_waiting_where_no_broker_is(executor: Executor) -> None:
    context = MemoryContext("kafka", NOWHERE, executor)
    listener = KafkaFactory().create(context)
    with pytest.raises(TransientError, match=r"127\.0\.0\.1:1 gives no answer: .*Connection refused"):
        listener.handle(batch(EXAMPLES))
    assert listener.flush(0.1) is None
    assert not listener.close(0.1)
