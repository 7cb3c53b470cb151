"""Servers in containers, as HEADWATER_SERVERS=containers starts them with testcontainers on a real Docker engine.

Nothing else finds that a name of testcontainers has changed, that an image lacks what a broker of one node needs, or
that servers came from elsewhere without a word. `python -m tests.kit.containers` runs a pytest that has an engine.
"""

from __future__ import annotations

import os
from contextlib import closing

import docker  # type: ignore[import-untyped] # it has no types
import pytest
from confluent_kafka import Consumer, Producer

from headwater import local
from headwater.local import NotOursError, ServerKind, ServerOrigin, Service, StartError, choose_server
from headwater.local.addresses import query_fault
from tests.kit.topics import new_topic
from tests.kit.waiting import until

pytestmark = [pytest.mark.containers, pytest.mark.long]


@pytest.fixture(params=list(ServerKind), ids=lambda kind: kind.value)
def server(request: pytest.FixtureRequest) -> Service:
    service: Service = request.getfixturevalue(request.param.value)
    return service


def test_the_servers_of_all_tests_are_containers_on_loopback(server: Service) -> None:
    assert server.origin is ServerOrigin.CONTAINER
    assert "127.0.0.1:" in server.address
    assert choose_server(ServerKind(server.name)).origin is ServerOrigin.CONTAINER


def test_a_container_is_neither_killed_nor_restarted(server: Service) -> None:
    with pytest.raises(NotOursError, match="can't be killed in its container"):
        server.kill()
    with pytest.raises(NotOursError, match="HEADWATER_SERVERS=local"):
        server.restart()
    assert server.running


def test_a_transaction_is_committed_on_one_broker(kafka: Service) -> None:
    """Its log has to be content with one replica, or the transaction waits for brokers that never come."""
    topic = new_topic(kafka.address, "transaction")
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": topic})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"committed")
    producer.commit_transaction(60)
    settings = {"bootstrap.servers": kafka.address, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    consumer.subscribe([topic])
    try:
        message = until(lambda: consumer.poll(1), "a message of a transaction")
        assert message is not None
        assert message.value() == b"committed"
    finally:
        consumer.close()


def test_what_is_stopped_is_removed() -> None:
    with closing(docker.from_env()) as client:
        before = {each.id for each in client.containers.list(all=True)}
        with local.postgres() as service:
            address = service.address
            assert len(client.containers.list(all=True)) == len(before) + 1
            assert query_fault(address) is None
        assert {each.id for each in client.containers.list(all=True)} == before
    assert query_fault(address)


def test_a_container_that_ends_is_an_error_with_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_MARIADB_IMAGE", os.environ["HEADWATER_POSTGRES_IMAGE"])
    with pytest.raises(StartError, match=r"(?s)container of mariadb didn't start.*POSTGRES_PASSWORD"):
        local.mariadb().start()
