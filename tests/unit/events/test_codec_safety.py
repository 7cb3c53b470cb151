"""Few bytes can't be made to mean very much, whoever wrote them."""

from __future__ import annotations

import json
import time
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from fastavro import parse_schema

from headwater.events.avro import (
    Codec,
    Confluent,
    DecodeError,
    Problem,
    SchemaBook,
    SchemaMessage,
    UnknownEvent,
    WriterSchema,
    current_schema,
    released,
    schema_message,
)
from headwater.events.avro.book import MAX_LEARNED_BYTES, MAX_SCHEMA_BYTES, fingerprint_of, read_schema
from headwater.events.avro.safety import bounded
from headwater.events.envelope import Event
from headwater.events.health import Heartbeat
from headwater.events.jobs import Committed
from headwater.testing.examples import EXAMPLES

MEGABYTE = 1 << 20


def record(*fields: dict[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": "headwater.events", "fields": list(fields), **more}


def field(type_: Any, name: str = "f") -> dict[str, Any]:
    return {"name": name, "type": type_}


def told(text: str) -> bytes:
    return schema_message(WriterSchema("R", 1, bytes(8), text))


def decoded(schema: dict[str, Any], body: bytes) -> UnknownEvent:
    """What comes of bytes of a schema that is told first."""
    codec = Codec()
    message = codec.decode(told(json.dumps(schema)))
    assert isinstance(message, SchemaMessage)
    event = codec.decode(b"\xc3\x01" + message.fingerprint + body)
    assert isinstance(event, UnknownEvent)
    assert event.kind is not None
    return event


def chain(depth: int, width: int, leaf: Any) -> list[dict[str, Any]]:
    """Records of so many records of so many records …, each named once."""
    records: list[Any] = [leaf]
    for n in range(depth):
        inner = [field(records[n] if k == 0 else _name(records[n]), f"a{k}") for k in range(width)]
        records.append({"type": "record", "name": f"Z{n}", "fields": inner})
    return [field(records[-1])]


def ladder(depth: int) -> list[dict[str, Any]]:
    """Each record has an array of the one before, to which it refers by its name."""
    first = field({"type": "record", "name": "L0", "fields": [field("boolean")]}, "f0")
    steps = [
        {"type": "record", "name": f"L{n}", "fields": [field({"type": "array", "items": f"L{n - 1}"})]}
        for n in range(1, depth)
    ]
    return [first, *(field(step, f"f{n}") for n, step in enumerate(steps, 1))]


def _name(type_: Any) -> Any:
    return type_["name"] if isinstance(type_, dict) else type_


def boxed(type_: Any, times: int) -> Any:
    """In a record in a record …, which takes no byte more."""
    for n in range(times):
        type_ = {"type": "record", "name": f"Box{n}", "fields": [field(type_)]}
    return type_


def items(type_: Any) -> dict[str, Any]:
    return field({"type": "array", "items": type_})


EMPTY = {"type": "record", "name": "E", "fields": []}
NODE = record(field(["null", "headwater.events.R"]))
DEEP = json.loads('{"type":"array","items":' * 200 + '"long"' + "}" * 200)
ENUM = {"type": "enum", "name": "X", "symbols": ["A"]}
FIXED = {"type": "fixed", "name": "X", "size": 1}
THIN = {"type": "record", "name": "TableChange", "fields": [field("boolean", "change")]}
ANOTHER = {"headwater.events.X": {"type": "array", "items": "null"}}
"""What fastavro keeps beside a schema that it has parsed: here with another X than the one that stands there."""

UNBOUNDED: dict[str, Any] = {
    "an array of nulls": record(items("null")),
    "an array of empty records": record(items(EMPTY)),
    "an array of records of nulls": record(items({**EMPTY, "fields": [field("null")]})),
    "an array of empty fixed": record(items({**FIXED, "size": 0})),
    "a named empty record": record(field(EMPTY, "a"), items("E")),
    "records of records of nulls": record(*chain(7, 10, "null")),
    "records of records of bytes": record(*chain(7, 10, "boolean")),
    "records of records without end": record(*chain(25, 100, "null")),
    "an array of boxes": record(items(boxed("boolean", 3))),
    "a map of boxes": record(field({"type": "map", "values": boxed("null", 4)})),
    "a union of boxes in an array": record(items(["null", boxed("null", 4)])),
    "few bytes that become many fields": record(items(THIN), name="AlterTable"),
    "a recursive record": NODE,
    "a deep type": record(field(DEEP)),
    "a type deep by its references": record(*ladder(40)),
    "an unknown name": record(field("Nowhere")),
    "an unknown name of many letters": record(field("N" * 100_000)),
    "no record": {"type": "enum", "name": "headwater.events.X", "symbols": ["A"]},
    "somebody else's": {**record(), "namespace": "org.example"},
    "a number": 7,
    "a record without fields": {"type": "record", "name": "R"},
    "fields that are none": {**record(), "fields": [1]},
    "a field without a type": record({"name": "f"}),
    "a field without a name": record({"type": "int"}),
    "a field twice": record(field("int"), field("int")),
    "a type twice": record(field(FIXED, "a"), field(FIXED, "b")),
    "a union of nothing": record(field([])),
    "a name that ends the canonical form": record(field("int", 'f","type":"int"}')),
    "a name in no namespace": record(field({**FIXED, "namespace": ""})),
    "a name of many letters": record(field({**FIXED, "namespace": "n" * 255})),
    "a namespace that is none": record(field({**FIXED, "namespace": None})),
    "no symbols": record(field({**ENUM, "symbols": None})),
    "a symbol twice": record(field({**ENUM, "symbols": ["A", "A"]})),
    "a size below zero": record(field({**FIXED, "size": -1})),
    "a size that is none": record(field({**FIXED, "size": True})),
    "an absurd size": record(field({**FIXED, "size": 10**30})),
    "a version below zero": record(field("int"), version=-(10**12)),
    "an absurd version": record(field("int"), version=2**31),
    "a version that is none": record(field("int"), version=True),
    "a version in words": record(field("int"), version="1"),
}


@pytest.mark.parametrize("schema", UNBOUNDED.values(), ids=UNBOUNDED)
def test_a_schema_from_the_bus_that_means_more_than_its_bytes_is_refused(schema: Any) -> None:
    with pytest.raises(DecodeError) as caught:
        Codec().decode(told(json.dumps(schema)))
    assert caught.value.problem is Problem.BAD_SCHEMA
    assert len(str(caught.value)) < 2_200


def test_json_that_nests_without_end_is_refused() -> None:
    with pytest.raises(DecodeError) as caught:
        Codec().decode(told("[" * 200_000))
    assert caught.value.problem is Problem.BAD_SCHEMA


WORTH_THEIR_BYTES: dict[str, tuple[dict[str, Any], bytes]] = {
    "an array of records of a byte": (items(boxed("boolean", 1)), b"\x01"),
    "an array of empty arrays": (items({"type": "array", "items": "int"}), b"\0"),
    "an array of empty maps": (items({"type": "map", "values": "int"}), b"\0"),
    "a map of nulls": (field({"type": "map", "values": "null"}), b"\x02a"),
    "a union of boxes": (items(["null", boxed("boolean", 2)]), b"\x02\x01"),
    "two fields filled in": (
        items({"type": "record", "name": "DatasetId", "fields": [field("string", "name")]}),
        b"\0",
    ),
}


@pytest.mark.parametrize("case", WORTH_THEIR_BYTES.values(), ids=WORTH_THEIR_BYTES)
def test_the_most_that_bytes_of_a_learned_schema_can_mean_is_a_multiple_of_them(
    case: tuple[dict[str, Any], bytes],
) -> None:
    many, item = case
    count = 50_000
    body = _varint(count) + item * count + b"\0"
    tracemalloc.start()
    decoded(record(many), body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 512 * len(body) + MEGABYTE


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("type_", ["boolean", "float", "double", FIXED], ids=["boolean", "float", "double", "fixed"])
def test_more_items_than_bytes_are_noticed_in_fields_that_are_passed_over(type_: Any, version: int) -> None:
    heartbeat = next(event for event in EXAMPLES if isinstance(event, Heartbeat))
    today = json.loads(current_schema(Heartbeat).text)
    newer = {**today, "version": version, "fields": [*today["fields"], items(type_)]}
    codec = Codec()
    message = codec.decode(told(json.dumps(newer)))
    assert isinstance(message, SchemaMessage)
    body = Codec().encode(heartbeat)[10:] + b"\x80" * 5 + b"\x08" + bytes(9)
    with pytest.raises(DecodeError) as caught:
        codec.decode(b"\xc3\x01" + message.fingerprint + body)
    assert caught.value.problem is Problem.MALFORMED


def test_the_deepest_and_widest_that_is_allowed_is_read_at_once() -> None:
    started = time.process_time()
    decoded(record(*chain(2, 10, "null"), *ladder(12)), bytes(20))
    assert time.process_time() - started < 1


def test_what_only_looks_parsed_is_read_as_it_stands() -> None:
    smuggled = record(field(FIXED, "a"), field("X", "b"), __fastavro_parsed=True, __named_schemas=ANOTHER)
    fixed = {"type": "fixed", "name": "headwater.events.X", "size": 1}
    parsed = read_schema(json.dumps(smuggled)).parsed
    assert parsed["__named_schemas"]["headwater.events.X"] == fixed
    assert parsed["fields"] == [field(fixed, "a"), field("headwater.events.X", "b")]


LOGICAL = {
    "decimal": {"type": "bytes", "logicalType": "decimal", "precision": 10**9, "scale": 2},
    "fixed decimal": {"type": "fixed", "name": "D", "size": 8, "logicalType": "decimal", "precision": 18},
    "uuid": {"type": "string", "logicalType": "uuid"},
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "int", "logicalType": "time-millis"},
    "time in micros": {"type": "long", "logicalType": "time-micros"},
    "timestamp in millis": {"type": "long", "logicalType": "timestamp-millis"},
    "local timestamp": {"type": "long", "logicalType": "local-timestamp-micros"},
    "duration": {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"},
    "micros of a string": {"type": "string", "logicalType": "timestamp-micros"},
    "somebody's own": {"type": "string", "logicalType": "reversed"},
    "no text": {"type": "int", "logicalType": ["date"]},
}


@pytest.mark.parametrize("type_", LOGICAL.values(), ids=LOGICAL)
def test_foreign_logical_types_are_read_as_what_carries_them(type_: dict[str, Any]) -> None:
    """As Avro's specification wants it of those that a reader doesn't know; ours is the one of time."""
    ours = {"type": "long", "logicalType": "timestamp-micros"}
    text = read_schema(json.dumps(record(field(type_), field(ours, "ours")))).text
    assert text.count("logicalType") == 1
    assert field(ours, "ours") in json.loads(text)["fields"]
    assert "precision" not in text


def test_a_decimal_of_a_megabyte_costs_no_more_than_its_bytes() -> None:
    started = time.process_time()
    digits = b"\x7f" * 900_000
    decoded(record(field(LOGICAL["decimal"])), _varint(len(digits)) + digits)
    assert time.process_time() - started < 1


def _varint(number: int) -> bytes:
    number <<= 1
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def test_a_schema_of_a_megabyte_is_refused() -> None:
    text = json.dumps(record(doc="x" * MAX_SCHEMA_BYTES))
    with pytest.raises(DecodeError, match="where 262144 are allowed") as caught:
        Codec().decode(told(text))
    assert caught.value.problem is Problem.TOO_LARGE


def test_a_schema_whose_full_names_take_a_megabyte_is_refused() -> None:
    enum = {**ENUM, "namespace": "n" * 250}
    text = json.dumps(
        record(field(enum, "a"), field({**EMPTY, "namespace": "n" * 250, "fields": [field(["X"] * 9_000)]}, "b"))
    )
    assert len(text) < MAX_SCHEMA_BYTES
    with pytest.raises(DecodeError, match="where 262144 are allowed") as caught:
        Codec().decode(told(text))
    assert caught.value.problem is Problem.TOO_LARGE


def test_the_largest_schema_of_ours_is_far_below_what_is_allowed() -> None:
    assert max(len(schema.text) for schema in released()) < MAX_SCHEMA_BYTES / 10


@pytest.mark.parametrize("schema", released(), ids=lambda schema: schema.kind)
def test_our_own_schemas_would_be_accepted_from_the_bus(schema: WriterSchema) -> None:
    read = read_schema(schema.text)
    assert (read.kind, read.version, read.fingerprint) == (schema.kind, schema.version, schema.fingerprint)
    again = json.loads(read.text)
    assert again["fields"] == bounded(json.loads(schema.text), {})["fields"]
    assert parse_schema(again) == schema.parsed


class TestLearnedSchemas:
    """They share a fixed room: a flood makes the old ones be forgotten, and never those in use."""

    def test_the_ones_not_used_for_longest_make_place(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("headwater.events.avro.book.MAX_LEARNED", 3)
        book = SchemaBook()
        first, second, third, fourth = (book.learn(json.dumps(record(field("int", f"f{n}")))) for n in range(4))
        assert [book.find(s.fingerprint) for s in (first, second, third, fourth)] == [None, second, third, fourth]
        book.find(second.fingerprint)
        assert book.learn(first.text) == first
        assert [book.find(s.fingerprint) for s in (first, second, third, fourth)] == [first, second, None, fourth]

    @pytest.mark.slow
    def test_a_flood_takes_bounded_memory_and_passes(self) -> None:
        book = SchemaBook()
        flood = [record(field(["int"] * 33_000, f"f{n}"), name="Heartbeat", version=n) for n in range(25)]
        learned = [book.learn(json.dumps(schema, separators=(",", ":"))) for schema in flood]
        kept = sum(len(schema.text) for schema in learned if book.find(schema.fingerprint))
        assert MAX_LEARNED_BYTES / 2 < kept <= MAX_LEARNED_BYTES
        after = book.learn(json.dumps(record(field("int", "after_the_flood"))))
        assert book.find(after.fingerprint) == after

    @pytest.mark.parametrize(("room", "ids"), [(3, 10_000), (4_096, 5)])
    def test_those_of_a_registry_share_the_room_and_are_asked_for_again(
        self, monkeypatch: pytest.MonkeyPatch, room: int, ids: int
    ) -> None:
        monkeypatch.setattr("headwater.events.avro.book.MAX_LEARNED", room)
        monkeypatch.setattr("headwater.events.avro.registry._MAX_KNOWN", ids)
        asked: list[int] = []

        class Many:
            def register(self, subject: str, schema: str) -> int:
                raise NotImplementedError

            def lookup(self, id: int) -> str | None:  # noqa: A002 - it is the id
                asked.append(id)
                return json.dumps(record(field("int", f"f{id}")))

        framing, book = Confluent(Many(), "events"), SchemaBook()

        def found(number: int) -> str:
            schema = framing.open(b"\0" + number.to_bytes(4, "big"), book).schema
            assert schema is not None
            return schema.text

        for number in (*range(12), 11, 11):
            assert f'"f{number}"' in found(number)
        assert asked == [*range(12)], "each is asked for once while it is there"
        assert '"f0"' in found(0)
        assert asked[-1] == 0, "what made place is asked for again"

    def test_what_is_kept_is_a_multiple_of_its_text(self) -> None:
        schema = read_schema(json.dumps(record(field([{"type": "array", "items": "int"}] * 1_000))))
        tracemalloc.start()
        parsed = schema.parsed
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(parsed["fields"]) == 1
        assert used < 20 * len(schema.text)

    def test_released_ones_are_never_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("headwater.events.avro.book.MAX_LEARNED", 1)
        book = SchemaBook()
        found = [book.learn(schema.text) for schema in released()]
        book.learn(json.dumps(record(field("int"))))
        assert [book.find(schema.fingerprint) for schema in released()] == found


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
