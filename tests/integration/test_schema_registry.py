"""Confluent framing against the registry's real HTTP protocol, through Confluent's own client."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from headwater.errors import ConfigurationError
from headwater.events.avro import (
    Codec,
    Confluent,
    DecodeError,
    HttpRegistry,
    RegistryRefusedError,
    RegistryUnavailableError,
    UnknownEvent,
    current_schema,
)
from headwater.events.clock import uuid7
from headwater.events.health import Closed, Heartbeat
from tests.kit.registry_server import SchemaRegistry, schema_registry

HEARTBEAT = Heartbeat(producer=uuid7(), sequence=1)


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with schema_registry() as running:
        yield running


def codec(registry: SchemaRegistry, **configuration: object) -> Codec:
    settings = {"url": registry.url, "max.retries": 0, "timeout": 5, **configuration}
    return Codec(Confluent(HttpRegistry(settings), "events"))


def test_events_carry_the_id_that_the_registry_gave(registry: SchemaRegistry) -> None:
    registry.register("other", '"string"')
    data = codec(registry).encode(HEARTBEAT)
    assert data[:5] == b"\x00\x00\x00\x00\x02"
    assert registry.subjects["events-headwater.events.Heartbeat"] == [2]
    assert json.loads(registry.schemas[1]) == json.loads(current_schema(Heartbeat).text)


def test_another_reader_finds_the_schema_by_its_id(registry: SchemaRegistry) -> None:
    data = codec(registry).encode(HEARTBEAT)
    assert codec(registry).decode(data) == HEARTBEAT


def test_each_schema_is_asked_for_once(registry: SchemaRegistry) -> None:
    writer, reader = codec(registry), codec(registry)
    for _ in range(5):
        reader.decode(writer.encode(HEARTBEAT))
        reader.decode(writer.encode(Closed(producer=uuid7())))
    assert len(registry.requests) == 4


def test_an_id_that_is_not_there_keeps_the_bytes_and_asks_no_more_for_a_while(registry: SchemaRegistry) -> None:
    reader, data = codec(registry), b"\x00\x00\x00\x00\x63rest"
    for _ in range(3):
        answer = reader.decode(data)
        assert isinstance(answer, UnknownEvent)
        assert answer.raw == data
    assert len(registry.requests) == 1


def test_what_was_written_without_a_registry_is_still_read(registry: SchemaRegistry) -> None:
    assert codec(registry).decode(Codec().encode(HEARTBEAT)) == HEARTBEAT


def test_without_a_registry_the_framing_is_reported(registry: SchemaRegistry) -> None:
    with pytest.raises(DecodeError, match=r"set schema\.registry\.url"):
        Codec().decode(codec(registry).encode(HEARTBEAT))


def test_somebody_elses_schema_keeps_the_bytes(registry: SchemaRegistry) -> None:
    """Nothing but its fingerprint is taken from the registry."""
    registry.register("orders", '{"type":"record","name":"Order","namespace":"shop","fields":[]}')
    found = codec(registry).decode(b"\x00\x00\x00\x00\x01")
    assert isinstance(found, UnknownEvent)
    assert found.kind is None


def test_a_cut_off_id_is_reported(registry: SchemaRegistry) -> None:
    with pytest.raises(DecodeError, match="the schema's id is cut off"):
        codec(registry).decode(b"\x00\x00\x00")


def test_credentials_reach_the_registry(registry: SchemaRegistry) -> None:
    codec(registry, **{"basic.auth.user.info": "me:secret"}).encode(HEARTBEAT)
    assert registry.authorization == ["Basic bWU6c2VjcmV0"]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (401, RegistryRefusedError),
        (409, RegistryRefusedError),
        (429, RegistryUnavailableError),
        (500, RegistryUnavailableError),
    ],
)
def test_whether_trying_again_can_help_is_reported_by_type(
    registry: SchemaRegistry, status: int, expected: type[Exception]
) -> None:
    registry.failure = (status, "no")
    with pytest.raises(expected, match="the schema registry"):
        codec(registry).encode(HEARTBEAT)
    with pytest.raises(expected, match="the schema registry"):
        codec(registry).decode(b"\x00\x00\x00\x00\x01")


def test_a_registry_that_is_away_is_transient_and_used_again_when_it_is_back(registry: SchemaRegistry) -> None:
    writer = codec(registry)
    registry.failure = (503, "starting")
    with pytest.raises(RegistryUnavailableError):
        writer.encode(HEARTBEAT)
    registry.failure = None
    assert codec(registry).decode(writer.encode(HEARTBEAT)) == HEARTBEAT


def test_nobody_listening_is_transient() -> None:
    with schema_registry() as gone:
        pass
    with pytest.raises(RegistryUnavailableError, match="ConnectError"):
        codec(gone).encode(HEARTBEAT)


def test_a_wrong_configuration_is_reported() -> None:
    with pytest.raises(ConfigurationError, match=r"schema\.registry: "):
        HttpRegistry({"url": "http://127.0.0.1:1", "nonsense": 1})
