"""The broker started here: it keeps what it acknowledged, comes back where it was, and tells why it can't start."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient

from headwater.local import KafkaServer, Service, StartError, cache_directory
from headwater.local import server as local_server
from headwater.local.cache import expected_hashes, verify
from headwater.local.fetch import Artifact, Fetcher, Ivy, Maven, fetcher, ivy_jar
from headwater.local.kafka import ARTIFACTS, HASHES, kafka_libraries, metadata_fault
from headwater.local.process import free_ports
from tests.kit.topics import values_of
from tests.kit.waiting import PATIENCE

pytestmark = [pytest.mark.kafka, pytest.mark.sample(2)]


def produce(config: dict[str, str], topic: str, values: Sequence[bytes]) -> None:
    """Return once every value is acknowledged by all."""
    refused: list[KafkaError] = []
    producer = Producer({**config, "acks": "all", "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: refused.append(error) if error else None)
    assert producer.flush(PATIENCE) == 0
    assert refused == []


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def cluster_of(broker: Service) -> str:
    return str(AdminClient({"bootstrap.servers": broker.address}).list_topics(timeout=PATIENCE).cluster_id)


def test_what_is_produced_is_consumed_in_order(kafka: Service) -> None:
    config, topic = {"bootstrap.servers": kafka.address}, f"order-{uuid.uuid4()}"
    produce(config, topic, numbered(1000))
    assert values_of(config, topic) == numbered(1000)


def test_it_keeps_what_it_acknowledged_over_a_kill_and_over_another_start(tmp_path: Path) -> None:
    with KafkaServer(directory=tmp_path) as broker:
        config, address, first = broker.client_config(), broker.address, broker.pid
        produce(config, "kept", numbered(10_000))
        cluster = cluster_of(broker)
        broker.kill()
        assert not broker.running
        assert metadata_fault(config) is not None
        broker.restart()
        assert broker.address == address
        assert broker.pid != first
        assert values_of(config, "kept") == numbered(10_000)
    with KafkaServer(directory=tmp_path) as again:  # on the same ports
        assert cluster_of(again) == cluster
        assert values_of(again.client_config(), "kept") == numbered(10_000)


def test_two_brokers_at_once_are_two_clusters_and_a_taken_port_is_given_up(
    kafka: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        offers = iter([(taken.getsockname()[1], *free_ports(1)), free_ports(2)])
        monkeypatch.setattr(local_server, "free_ports", lambda _: next(offers))
        with KafkaServer() as other:
            assert next(offers, None) is None
            assert other.address != kafka.address
            produce(other.client_config(), "here-only", [b"x"])
            assert cluster_of(other) != cluster_of(kafka)
            shared = AdminClient({"bootstrap.servers": kafka.address}).list_topics(timeout=PATIENCE)
            assert "here-only" not in shared.topics


def test_added_properties_hold_and_a_wrong_password_is_reported() -> None:
    secured = {
        "listener.security.protocol.map": "BROKER:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.broker.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required username='me' password='right';"
        ),
    }
    client = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": "right",
    }
    user = ["--add-scram", "SCRAM-SHA-512=[name=me,password=right]"]
    with KafkaServer(properties=secured, client=client, format_arguments=user) as broker:
        produce(broker.client_config(), "secured", [b"x"])
        fault = metadata_fault({**broker.client_config(), "sasl.password": "wrong"})
        assert fault is not None
        assert "Authentication failed" in fault


def test_a_broker_that_cannot_start_shows_the_end_of_its_log_and_leaves_nothing(tmp_path: Path) -> None:
    broker = KafkaServer(properties={"num.io.threads": "none"}, directory=tmp_path)
    with pytest.raises(StartError, match=r"num\.io\.threads") as caught:
        broker.start()
    assert "its log" in str(caught.value)
    assert not broker.running


class Forbidden:
    """A fetcher that must not be asked."""

    def fetch(self, artifacts: Sequence[Artifact], into: Path) -> None:
        raise AssertionError(f"{artifacts} were fetched again into {into}")


def test_the_second_start_fetches_nothing() -> None:
    first = kafka_libraries()

    def forbidden() -> Fetcher:
        return Forbidden()

    assert kafka_libraries(fetch_with=forbidden) == first
    with pytest.raises(AssertionError, match="were fetched again"):  # it would have been noticed
        Forbidden().fetch(ARTIFACTS, first)


@pytest.mark.slow
def test_ivy_brings_exactly_the_files_that_the_package_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")  # neither Maven nor Java: only what came as wheels
    jar = ivy_jar()
    assert jar is not None
    # The cache of Ivy makes the second run quick; what comes out of it is verified all the same.
    Ivy(jar, cache_directory() / "ivy").fetch(ARTIFACTS, tmp_path)
    verify(tmp_path, expected_hashes(HASHES))


@pytest.mark.slow
def test_maven_brings_exactly_the_files_that_the_package_lists(tmp_path: Path) -> None:
    chosen = fetcher()
    if isinstance(chosen, Maven):
        chosen.fetch(ARTIFACTS, tmp_path)
    else:  # a machine without Maven: the other test covers its only way, so this one holds the cache to the list
        tmp_path = kafka_libraries()
    verify(tmp_path, expected_hashes(HASHES))
