"""Few bytes can't be made to mean very much, whoever wrote them."""

from __future__ import annotations

import json
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest

from headwater.events.avro import Codec, DecodeError, Problem, SchemaMessage, current_schema, schema_message
from headwater.events.avro.book import MAX_SCHEMA_BYTES, WriterSchema, fingerprint_of
from headwater.events.envelope import Event
from headwater.events.jobs import Committed
from headwater.testing.examples import EXAMPLES

MEGABYTE = 1 << 20


def record(*fields: dict[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": "headwater.events", "fields": list(fields), **more}


def field(type_: Any, name: str = "f") -> dict[str, Any]:
    return {"name": name, "type": type_}


EMPTY = {"type": "record", "name": "E", "fields": []}
NODE = record(field(["null", "headwater.events.R"]))
DEEP = json.loads('{"type":"array","items":' * 200 + '"long"' + "}" * 200)

UNBOUNDED: dict[str, Any] = {
    "an array of nulls": record(field({"type": "array", "items": "null"})),
    "an array of empty records": record(field({"type": "array", "items": EMPTY})),
    "an array of records of nulls": record(field({"type": "array", "items": {**EMPTY, "fields": [field("null")]}})),
    "an array of empty fixed": record(field({"type": "array", "items": {"type": "fixed", "name": "X", "size": 0}})),
    "a named empty record": record(field(EMPTY, "a"), field({"type": "array", "items": "E"}, "b")),
    "a recursive record": NODE,
    "a deep type": record(field(DEEP)),
    "an unknown name": record(field("Nowhere")),
    "no record": {"type": "enum", "name": "headwater.events.X", "symbols": ["A"]},
    "somebody else's": {**record(), "namespace": "org.example"},
    "a number": 7,
    "a record without fields": {"type": "record", "name": "R"},
    "fields that are none": {**record(), "fields": [1]},
}


@pytest.mark.parametrize("schema", UNBOUNDED.values(), ids=UNBOUNDED)
def test_a_schema_from_the_bus_that_means_more_than_its_bytes_is_refused(schema: Any) -> None:
    codec = Codec()
    message = schema_message(WriterSchema("R", 1, bytes(8), json.dumps(schema)))
    with pytest.raises(DecodeError) as caught:
        codec.decode(message)
    assert caught.value.problem is Problem.BAD_SCHEMA


def test_a_map_of_nulls_is_fine_because_its_keys_take_bytes() -> None:
    schema = record(field({"type": "map", "values": "null"}))
    message = schema_message(WriterSchema("R", 1, bytes(8), json.dumps(schema)))
    assert isinstance(Codec().decode(message), SchemaMessage)


def test_a_schema_of_megabytes_is_refused() -> None:
    text = json.dumps(record(doc="x" * MAX_SCHEMA_BYTES))
    with pytest.raises(DecodeError, match="where 1048576 are allowed"):
        Codec(max_bytes=4 * MEGABYTE).decode(schema_message(WriterSchema("R", 1, bytes(8), text)))


def test_a_flood_of_schemas_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.events.avro.book.MAX_LEARNED", 3)
    codec = Codec()
    messages = [
        schema_message(WriterSchema("R", 1, bytes(8), json.dumps(record(field("int", f"f{n}"))))) for n in range(4)
    ]
    for message in messages[:3] * 2:
        assert isinstance(codec.decode(message), SchemaMessage)
    with pytest.raises(DecodeError, match="is somebody flooding"):
        codec.decode(messages[3])


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.kind)
@pytest.mark.parametrize(
    "length", [b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"]
)
def test_absurd_lengths_are_refused_without_being_believed(event: Event, length: bytes) -> None:
    """The greatest and the least long that Avro can say, in place of each byte that may be a length."""
    codec, good = Codec(), Codec().encode(event)
    tracemalloc.start()
    for at in range(10, len(good)):
        with suppress(DecodeError):
            codec.decode(good[:at] + length + good[at + 1 :])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * MEGABYTE


@pytest.mark.slow
def test_the_most_that_a_message_can_mean_is_bounded() -> None:
    """The smallest inputs that a Committed can have, as many as fit: 13 bytes each, and some hundreds in memory."""
    schema = current_schema(Committed)
    assert fingerprint_of(json.loads(schema.text)) == schema.fingerprint
    commit = next(event for event in EXAMPLES if isinstance(event, Committed))
    count = 65_000
    plain = commit.model_copy(
        update={"inputs": tuple(commit.inputs[0].model_copy(update=_NOTHING) for _ in range(count))}
    )
    data = Codec().encode(plain)
    assert len(data) < MEGABYTE
    tracemalloc.start()
    back = Codec().decode(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(back, Committed)
    assert len(back.inputs) == count
    assert peak < 256 * MEGABYTE


_NOTHING = {"dataset": None, "table": None, "life": None, "snapshot": None}
