"""The schema registry of the tests is held to the public contract of Confluent's: the Schema Registry API reference of
Confluent Platform (schemas, subjects, compatibility and config, version 1). No real one can be had here, so the table
below was written from that reference, and Confluent's own client in memory is a second opinion where it has one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from headwater.errors import TerminalError
from headwater.events.avro import Codec, Confluent, HttpRegistry, current_schema
from headwater.events.clock import uuid7
from headwater.events.health import Heartbeat
from tests.kit.registry_server import CONTENT_TYPE, SchemaRegistry, schema_registry


def record(*fields: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "namespace": "n", "fields": fields}, separators=(",", ":"))


A, B, C = {"name": "a", "type": "int"}, {"name": "b", "type": "string", "default": ""}, {"name": "c", "type": "long"}
ONE, WITH_DEFAULT, WITHOUT_DEFAULT = record(A), record(A, B), record(A, C)
WIDER = record({"name": "a", "type": "long"})
V1 = {"subject": "s", "version": 1, "id": 1, "schema": ONE}

CONTRACT: list[tuple[str, str, dict[str, str] | None, int, Any]] = [
    # what is asked in this order of a new registry, and what is answered: the body, or an error's code
    ("GET", "/subjects", None, 200, []),
    ("GET", "/config", None, 200, {"compatibilityLevel": "BACKWARD"}),
    ("GET", "/subjects/s/versions", None, 404, 40401),
    ("GET", "/subjects/s/versions/1", None, 404, 40401),
    ("POST", "/subjects/s", {"schema": ONE}, 404, 40401),
    ("GET", "/schemas/ids/1", None, 404, 40403),
    ("POST", "/subjects/s/versions", {"schema": "{"}, 422, 42201),
    ("POST", "/subjects/s/versions", {"schema": json.dumps({"type": "nothing"})}, 422, 42201),
    ("POST", "/subjects/s/versions", {"schema": ONE}, 200, {"id": 1}),
    ("POST", "/subjects/s/versions", {"schema": ONE}, 200, {"id": 1}),
    ("POST", "/subjects/s/versions", {"schema": json.dumps(json.loads(ONE), indent=4)}, 200, {"id": 1}),
    ("GET", "/subjects/s/versions", None, 200, [1]),
    ("GET", "/schemas/ids/1", None, 200, {"schema": ONE}),
    ("GET", "/subjects/s/versions/1", None, 200, V1),
    ("GET", "/subjects/s/versions/latest", None, 200, V1),
    ("GET", "/subjects/s/versions/2", None, 404, 40402),
    ("GET", "/subjects/s/versions/nothing", None, 422, 42202),
    ("GET", "/subjects/s/versions/0", None, 422, 42202),
    ("POST", "/subjects/s", {"schema": ONE}, 200, V1),
    ("POST", "/subjects/s", {"schema": WITH_DEFAULT}, 404, 40403),
    # BACKWARD: who reads with the new one reads what the last one wrote
    ("POST", "/compatibility/subjects/s/versions/latest", {"schema": WITHOUT_DEFAULT}, 200, {"is_compatible": False}),
    ("POST", "/compatibility/subjects/s/versions/latest", {"schema": WITH_DEFAULT}, 200, {"is_compatible": True}),
    ("POST", "/compatibility/subjects/s/versions/latest", {"schema": WIDER}, 200, {"is_compatible": True}),
    ("POST", "/compatibility/subjects/s/versions/9", {"schema": ONE}, 404, 40402),
    ("POST", "/subjects/s/versions", {"schema": WITHOUT_DEFAULT}, 409, 409),
    ("GET", "/subjects/s/versions", None, 200, [1]),
    ("POST", "/subjects/other/versions", {"schema": WITHOUT_DEFAULT}, 200, {"id": 2}),
    ("POST", "/subjects/s/versions", {"schema": WITH_DEFAULT}, 200, {"id": 3}),
    ("POST", "/subjects/other2/versions", {"schema": ONE}, 200, {"id": 1}),
    (
        "GET",
        "/schemas/ids/1/versions",
        None,
        200,
        [{"subject": "s", "version": 1}, {"subject": "other2", "version": 1}],
    ),
    ("GET", "/subjects", None, 200, ["other", "other2", "s"]),
    # other levels
    ("PUT", "/config", {"compatibility": "SOMEHOW"}, 422, 42203),
    ("PUT", "/config/other", {"compatibility": "FORWARD"}, 200, {"compatibility": "FORWARD"}),
    ("GET", "/config/other", None, 200, {"compatibilityLevel": "FORWARD"}),
    ("POST", "/subjects/other/versions", {"schema": ONE}, 409, 409),
    ("PUT", "/config/other2", {"compatibility": "FULL"}, 200, {"compatibility": "FULL"}),
    ("POST", "/subjects/other2/versions", {"schema": WIDER}, 409, 409),
    ("POST", "/subjects/other2/versions", {"schema": WITH_DEFAULT}, 200, {"id": 3}),
    ("PUT", "/config", {"compatibility": "NONE"}, 200, {"compatibility": "NONE"}),
    ("POST", "/subjects/s/versions", {"schema": json.dumps("string")}, 200, {"id": 4}),
    ("GET", "/nothing", None, 404, 404),
]


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with schema_registry() as running:
        yield running


@pytest.fixture(params=["process", pytest.param("container", marks=[pytest.mark.containers, pytest.mark.long])])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Of a new registry, here or in a container."""
    if request.param == "process":
        with schema_registry() as running:
            yield running.url
    else:
        from tests.kit.containers import registry_container  # its import takes a while

        with registry_container() as address:
            yield address


def asked(url: str, method: str, body: dict[str, str] | None) -> tuple[int, str, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"Content-Type": CONTENT_TYPE}, method=method)  # noqa: S310 - http on loopback
    try:
        with urlopen(request, timeout=30) as answer:  # noqa: S310 - http on loopback
            return answer.status, answer.headers["Content-Type"], json.load(answer)
    except HTTPError as e:
        return e.code, e.headers["Content-Type"], json.load(e)


def test_it_answers_as_the_reference_says(url: str) -> None:
    for method, path, body, status, expected in CONTRACT:
        found, kind, answer = asked(url + path, method, body)
        assert (found, kind) == (status, CONTENT_TYPE), (method, path, answer)
        if status == 200:
            assert answer == expected, (method, path)
        else:
            assert answer["error_code"] == expected, (method, path, answer)
            assert set(answer) == {"error_code", "message"}


def test_confluents_own_client_in_memory_says_the_same_of_one_subject(url: str) -> None:
    """Its ids are not those of contents where there are several subjects, and it refuses nothing."""
    ours, theirs = (SchemaRegistryClient.new_client({"url": each}) for each in (url, "mock://"))
    for text in (ONE, WITH_DEFAULT, ONE):
        schema = Schema(text, "AVRO")
        assert ours.register_schema("s", schema) == theirs.register_schema("s", schema)
        mine, other = (client.lookup_schema("s", schema) for client in (ours, theirs))
        assert (mine.subject, mine.version, mine.schema_id) == (other.subject, other.version, other.schema_id)
        assert mine.schema_id is not None
        assert {client.get_schema(mine.schema_id).schema_str for client in (ours, theirs)} == {text}
    assert sorted(ours.get_versions("s")) == sorted(theirs.get_versions("s")) == [1, 2]
    assert ours.get_subjects() == theirs.get_subjects() == ["s"]
    for client in (ours, theirs):
        with pytest.raises(Exception, match=r"40403|Not Found|not found"):
            client.lookup_schema("s", Schema(WIDER, "AVRO"))


def test_an_event_that_the_registry_finds_incompatible_is_refused_for_good(registry: SchemaRegistry) -> None:
    """An older schema has a field that ours lacks: who reads ahead couldn't read what we write."""
    subject = "events-headwater.events.Heartbeat"
    older = json.loads(current_schema(Heartbeat).text)
    older["fields"].append({"name": "more", "type": "string"})
    registry.levels[subject] = "FORWARD"
    registry.register(subject, json.dumps(older))
    codec = Codec(Confluent(HttpRegistry({"url": registry.url, "max.retries": 0}), "events"))
    with pytest.raises(TerminalError, match=f"refuses to register {subject}: .*incompatible"):
        codec.encode(Heartbeat(producer=uuid7(), sequence=1))
    registry.levels[subject] = "BACKWARD"
    assert codec.encode(Heartbeat(producer=uuid7(), sequence=1))[:5] == b"\x00\x00\x00\x00\x02"


def test_every_schema_of_ours_can_be_read_with_itself(registry: SchemaRegistry) -> None:
    from headwater.events.avro import released

    for schema in released():
        registry.levels[""] = "FULL"
        first = registry.register(schema.kind, schema.text)
        assert registry.register(schema.kind, schema.text) == first
