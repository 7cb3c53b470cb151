"""Old versions are upgraded; what is newer or unknown keeps its bytes through an old reader."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer

from headwater.events import Heartbeat
from headwater.events.avro import (
    Codec,
    DecodeError,
    Problem,
    SchemaMessage,
    UnknownEvent,
    WriterSchema,
    current_schema,
    schema_message,
)
from headwater.events.avro.book import fingerprint_of, read_schema
from headwater.events.ids import uuid7

HEARTBEAT = Heartbeat(producer=uuid7(), sequence=7, family_sequence=5, application="app")
SCHEMA: dict[str, Any] = json.loads(current_schema(Heartbeat).text)
PLAIN: dict[str, Any] = {
    **{field["name"]: field.get("default") for field in SCHEMA["fields"]},
    **HEARTBEAT.model_dump(mode="python"),
    "producer": HEARTBEAT.producer.bytes,
    "dropped": {},
}


def changed(
    version: int, *, add: dict[str, Any] | None = None, drop: str = "", name: str = "Heartbeat"
) -> WriterSchema:
    fields = [field for field in SCHEMA["fields"] if field["name"] != drop] + ([add] if add else [])
    return read_schema(json.dumps({**SCHEMA, "version": version, "name": name, "fields": fields}))


def written(schema: WriterSchema, **more: Any) -> bytes:
    buffer = io.BytesIO(b"\xc3\x01" + schema.fingerprint)
    buffer.seek(10)
    schemaless_writer(buffer, schema.parsed, {**PLAIN, "schema_version": schema.version, **more})
    return buffer.getvalue()


def taught(*schemas: WriterSchema) -> Codec:
    codec = Codec()
    for schema in schemas:
        told = codec.decode(schema_message(schema))
        assert told == SchemaMessage(schema.fingerprint, schema.text)
    return codec


NEWER = changed(2, add={"name": "mood", "type": "string"})
OLDER = changed(0, drop="part")
UNKNOWN = changed(1, name="Earthquake")
INCOMPATIBLE = changed(3, drop="time")


def test_an_older_version_is_read_as_the_newest() -> None:
    assert taught(OLDER).decode(written(OLDER)) == HEARTBEAT


def test_a_newer_version_keeps_its_bytes_and_is_understood_as_far_as_it_can_be() -> None:
    codec, data = taught(NEWER), written(NEWER, mood="fine")
    assert codec.decode(data) == UnknownEvent(data, NEWER.fingerprint, "Heartbeat", 2, known=HEARTBEAT)
    assert codec.encode(UnknownEvent(data, NEWER.fingerprint)) == data


def test_a_newer_version_that_is_not_understood_keeps_its_bytes() -> None:
    data = written(INCOMPATIBLE)
    assert taught(INCOMPATIBLE).decode(data) == UnknownEvent(data, INCOMPATIBLE.fingerprint, "Heartbeat", 3, known=None)


def test_an_unknown_kind_keeps_its_bytes() -> None:
    data = written(UNKNOWN)
    assert taught(UNKNOWN).decode(data) == UnknownEvent(data, UNKNOWN.fingerprint, "Earthquake", 1)


def test_a_schema_nobody_told_keeps_the_bytes_until_it_is_told() -> None:
    codec, data = Codec(), written(NEWER, mood="fine")
    assert codec.decode(data) == UnknownEvent(data, NEWER.fingerprint)
    codec.decode(schema_message(NEWER))
    told = codec.decode(data)
    assert isinstance(told, UnknownEvent)
    assert told.known == HEARTBEAT


@pytest.mark.parametrize("schema", [NEWER, OLDER], ids=["newer", "older"])
def test_malformed_bytes_of_another_version_are_an_error(schema: WriterSchema) -> None:
    codec, good = taught(schema), written(schema, mood="fine")
    for bad, problem in ((good[:-1], Problem.MALFORMED), (good + b"\0", Problem.TRAILING_BYTES)):
        with pytest.raises(DecodeError) as caught:
            codec.decode(bad)
        assert caught.value.problem is problem
        assert caught.value.kind == "Heartbeat"


def test_the_fingerprint_is_that_of_the_avro_specification() -> None:
    """The value that the specification's own algorithm gives for the type int, least byte first."""
    assert fingerprint_of("int").hex() == "8f5c393f1ad57572"


def test_what_only_documents_a_schema_does_not_change_its_fingerprint() -> None:
    assert fingerprint_of({**SCHEMA, "doc": "words", "version": 99}) == current_schema(Heartbeat).fingerprint


@pytest.mark.parametrize(
    ("data", "problem", "words"),
    [
        (b"", Problem.EMPTY, "there are none"),
        (b"\x00\x00\x00\x00\x05x", Problem.UNKNOWN_FRAMING, r"set schema\.registry\.url"),
        (b'{"kind":"Heartbeat"}', Problem.UNKNOWN_FRAMING, "they look like JSON"),
        (b"\x1f\x8b\x08compressed", Problem.UNKNOWN_FRAMING, "they begin with 1f8b"),
        (b"\xc3\x01\x01\x02", Problem.MALFORMED, "fingerprint is cut off"),
        (Codec().encode(HEARTBEAT)[:-1], Problem.MALFORMED, "end too early"),
        (Codec().encode(HEARTBEAT) + b"\0", Problem.TRAILING_BYTES, "1 too many"),
        (b"\xc3\x01" + bytes(1_000_000), Problem.TOO_LARGE, "1000002 bytes, where 1000000 are allowed"),
    ],
    # Names of their own: those made from bytes that differ from run to run would differ between parallel workers.
    ids=["nothing", "confluent", "json", "gzip", "short-fingerprint", "cut-off", "one-too-many", "too-large"],
)
def test_what_is_wrong_with_bytes_is_told(data: bytes, problem: Problem, words: str) -> None:
    with pytest.raises(DecodeError, match=words) as caught:
        Codec().decode(data)
    assert caught.value.problem is problem


def test_what_a_field_must_not_be_is_told_with_its_name() -> None:
    buffer = io.BytesIO(b"\xc3\x01" + current_schema(Heartbeat).fingerprint)
    buffer.seek(10)
    schemaless_writer(buffer, parse_schema(SCHEMA), {**PLAIN, "sequence": -1})
    with pytest.raises(DecodeError, match="sequence: Input should be greater than or equal to 0") as caught:
        Codec().decode(buffer.getvalue())
    assert caught.value.problem is Problem.INVALID
