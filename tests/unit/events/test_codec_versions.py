"""Old versions are upgraded; what is newer or unknown keeps its bytes through an old reader."""

from __future__ import annotations

import io
import json
import random
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer

from headwater.events import Heartbeat
from headwater.events.avro import (
    Codec,
    DecodeError,
    Problem,
    UnknownEvent,
    WriterSchema,
    current_schema,
)
from headwater.events.avro.framing import HEADER_BYTES
from headwater.events.avro.schema_cache import SchemaCache, fingerprint_of, read_schema
from headwater.events.avro.upgrade import STEPS, Resolution, upgraded
from headwater.events.clock import uuid7
from headwater.events.envelope import Event
from headwater.events.jobs import Committed
from headwater.testing.examples import EXAMPLES
from tests.kit.events.fuzz import Maker, mutated_schema, watched
from tools import schemas

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
    return Codec(schemas=SchemaCache(schemas))


NEWER = changed(2, add={"name": "mood", "type": "string"})
OLDER = changed(0, drop="run")
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


def test_an_event_that_says_itself_that_it_is_newer_is_one() -> None:
    """A version can change only what a field means: the schema, and so its fingerprint, is that of the one before."""
    today = current_schema(Heartbeat)
    data = written(today, schema_version=2)
    assert Codec().decode(data) == UnknownEvent(data, today.fingerprint, "Heartbeat", 2, known=HEARTBEAT)


def test_the_event_is_believed_where_its_schema_says_something_else() -> None:
    data = written(OLDER, schema_version=9)
    assert taught(OLDER).decode(data) == UnknownEvent(data, OLDER.fingerprint, "Heartbeat", 9, known=HEARTBEAT)


@pytest.mark.parametrize("schema", [current_schema(Heartbeat), OLDER, NEWER], ids=["today's", "older", "newer"])
def test_a_version_that_is_none_is_an_error(schema: WriterSchema) -> None:
    """Avro's int has 32 bits, but its bytes can hold more."""
    good = written(schema, mood="fine", schema_version=0)
    for version in (b"\x80\x80\x80\x80\x10", b"\xfe" + b"\xff" * 8 + b"\x01"):
        with pytest.raises(DecodeError, match="schema_version") as caught:
            taught(schema).decode(good[:HEADER_BYTES] + version + good[HEADER_BYTES + 1 :])
        assert caught.value.problem is Problem.INVALID


def test_a_schema_that_does_not_say_its_version_is_read_by_what_the_event_says() -> None:
    described = {key: value for key, value in json.loads(NEWER.text).items() if key != "version"}
    schema = read_schema(json.dumps(described))
    data = written(schema, mood="fine", schema_version=2)
    assert schema.version == 0
    assert taught(schema).decode(data) == UnknownEvent(data, NEWER.fingerprint, "Heartbeat", 2, known=HEARTBEAT)


@pytest.mark.parametrize("version", [-1, -(10**12)])
def test_upgrading_ends_whatever_version_it_begins_at(version: int) -> None:
    with watched(hang=1):
        assert upgraded(Heartbeat, version, {}) == {"schema_version": 1}


def test_upgrading_takes_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "application": record["application"].upper()}

    monkeypatch.setitem(STEPS, ("Heartbeat", 0), step)
    assert taught(OLDER).decode(written(OLDER)) == HEARTBEAT.model_copy(update={"application": "APP"})


def test_two_versions_of_one_form_cannot_be_released(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(schemas, "SCHEMAS", tmp_path)
    monkeypatch.setattr(schemas, "KINDS", {"Heartbeat": Heartbeat})
    index = {"Heartbeat.v0.avsc": {"fingerprint": current_schema(Heartbeat).fingerprint.hex(), "sha256": ""}}
    (tmp_path / "index.json").write_text(json.dumps(index))
    assert schemas.main() == 1
    assert "Heartbeat.v1.avsc has the fingerprint of Heartbeat.v0.avsc" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["index.json"]
    assert json.loads((tmp_path / "index.json").read_text()) == index


def test_fields_in_blocks_that_tell_their_size_are_passed_over() -> None:
    """Other writers of Avro may write an array so: the number of items below zero, then how many bytes they take."""
    new = {"name": "moods", "type": {"type": "array", "items": "int"}}
    fields = [SCHEMA["fields"][0], new, *SCHEMA["fields"][1:]]
    schema = read_schema(json.dumps({**SCHEMA, "version": 2, "fields": fields}))
    plain = written(schema, moods=[])
    at = HEADER_BYTES + 1
    assert plain[at] == 0
    blocks = bytes([3, 4, 2, 2, 1, 2, 2, 0])  # two items in two bytes, one in one, and the end
    found = taught(schema).decode(plain[:at] + blocks + plain[at + 1 :])
    assert isinstance(found, UnknownEvent)
    assert found.known == HEARTBEAT


@pytest.mark.slow
def test_resolving_is_what_fastavro_makes_of_the_same() -> None:
    """Of well-formed bytes, which it passes over safely."""
    rng = random.Random(4)
    same = 0
    for _ in range(1_000):
        event = rng.choice(EXAMPLES)
        try:
            schema = read_schema(mutated_schema(event, rng))
        except DecodeError:
            continue
        mine = current_schema(type(event))
        try:
            content = plain_content(schema, event, rng)
        except (OverflowError, ValueError):  # a schema of which a record means more than a message holds
            continue
        both = by_fastavro(schema, mine, content)
        if both is not None:
            read, theirs = both
            assert schema.resolution(mine)(read) == theirs
            same += 1
    assert same > 150


def by_fastavro(schema: WriterSchema, mine: WriterSchema, content: Any) -> tuple[Any, Any] | None:
    """The record as it was written, and resolved; None if the event can't be written so, or isn't resolved."""
    body = io.BytesIO()
    try:
        schemaless_writer(body, schema.parsed, content)
        resolved = schemaless_reader(io.BytesIO(body.getvalue()), schema.parsed, mine.parsed)
        read = schemaless_reader(io.BytesIO(body.getvalue()), schema.parsed, None, return_named_type=True)
    except Exception:  # noqa: BLE001 - it raises many kinds of errors
        return None
    return read, resolved


def plain_content(schema: WriterSchema, event: Event, rng: random.Random) -> dict[str, Any]:
    maker = Maker(schema.parsed["__named_schemas"], rng)
    fields = {field["name"]: field["type"] for field in schema.parsed["fields"]}
    return {name: maker.value(type_) for name, type_ in fields.items()} | record_of(event)


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "F", "size": 2}
FIXEDS = {"type": "array", "items": ["null", FIXED]}
INNER = {"type": "record", "name": "I", "fields": [{"name": "a", "type": "int"}]}
TIME = {"type": "long", "logicalType": "timestamp-micros"}
NOON = datetime(1970, 1, 1, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("written_as", "read_as", "value", "becomes"),
    [
        ("int", "double", 1, 1.0),
        ("long", "float", 1, 1.0),
        ("float", "double", 0.5, 0.5),
        ("string", "bytes", "a", b"a"),
        ("bytes", "string", b"a", "a"),
        ("long", TIME, 12 * 3_600_000_000, NOON),
        (TIME, TIME, NOON, NOON),
        ("int", ["null", "long"], 7, 7),
        (["null", "int"], "long", 7, 7),
        (["null", "string"], ["null", "string"], None, None),
        (["null", FIXED, "string"], ["null", FIXED, "string"], b"ab", b"ab"),
        (["null", FIXED, "string"], ["null", FIXED, "string"], "text", "text"),
        (["string", TIME], TIME, NOON, NOON),
        (FIXEDS, FIXEDS, [None, b"ab"], [None, b"ab"]),
        ({"type": "map", "values": "int"}, {"type": "map", "values": "double"}, {"k": 1}, {"k": 1.0}),
        ({**ENUM, "symbols": ["A", "C"]}, {**ENUM, "default": "B"}, "C", "B"),
        ({**ENUM, "symbols": ["A", "C"]}, ENUM, "A", "A"),
        (INNER, {**INNER, "fields": [{"name": "b", "type": ["null", "int"], "default": None}]}, {"a": 1}, {"b": None}),
        ({**INNER, "namespace": "of.another"}, INNER, {"a": 1}, {"a": 1}),
    ],
    ids=str,
)  # fmt: skip
def test_avro_resolves(written_as: Any, read_as: Any, value: Any, becomes: Any) -> None:
    assert repr(resolved(written_as, read_as, value)) == repr(becomes)  # 1 equals 1.0, and isn't it


@pytest.mark.parametrize(
    ("written_as", "read_as", "value"),
    [
        ("string", "int", "1"),
        ("int", "string", 1),
        ("boolean", "int", True),
        ("long", "int", 1),
        (TIME, "long", NOON),
        (["null", "int"], "int", None),
        (["null", "string"], ["null", "int"], "a"),
        (FIXED, {**FIXED, "size": 3}, b"ab"),
        (FIXED, "bytes", b"ab"),
        ({**ENUM, "symbols": ["A", "C"]}, ENUM, "C"),
        (ENUM, "string", "A"),
        (INNER, {**INNER, "name": "J"}, {"a": 1}),
        (INNER, {**INNER, "fields": [{"name": "b", "type": "int"}]}, {"a": 1}),
        ({"type": "array", "items": "string"}, {"type": "array", "items": "int"}, ["1"]),
    ],
    ids=str,
)
def test_avro_does_not_resolve(written_as: Any, read_as: Any, value: Any) -> None:
    """Wrong would be worse than missing: what looks like a number isn't one."""
    with pytest.raises(DecodeError, match="can't be resolved to today's schema") as caught:
        resolved(written_as, read_as, value)
    assert caught.value.problem is Problem.MALFORMED


def resolved(written_as: Any, read_as: Any, value: Any) -> Any:
    """The value, written in one type and resolved to another."""
    writer, reader = (
        parse_schema({"type": "record", "name": "n.R", "fields": [{"name": "f", "type": type_}]})
        for type_ in (written_as, read_as)
    )
    body = io.BytesIO()
    schemaless_writer(body, writer, {"f": value})
    body.seek(0)
    read: Any = schemaless_reader(body, writer, None, return_named_type=True)
    return Resolution(writer, reader)(read)["f"]  # type: ignore[arg-type]


def test_an_unknown_kind_keeps_its_bytes() -> None:
    data = written(UNKNOWN)
    assert taught(UNKNOWN).decode(data) == UnknownEvent(data, UNKNOWN.fingerprint, "Earthquake", 1)


def test_an_unknown_schema_keeps_the_bytes() -> None:
    data = written(NEWER, mood="fine")
    assert Codec().decode(data) == UnknownEvent(data, NEWER.fingerprint)
    assert Codec().encode(UnknownEvent(data, NEWER.fingerprint)) == data


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no Avro record schema"),
        ("[]", "no Avro record schema"),
        ("{", "no Avro record schema"),
        ('"string"', "no Avro record schema"),
        ('{"type":"record","name":"X","fields":[{"name":"a","type":"b"}]}', "no Avro record schema"),
        ('{"type":"record","name":"shop.X","fields":[]}', "a record of headwater.events is expected, not shop.X"),
        ('{"type":"record","name":"headwater.events.X","version":-1,"fields":[]}', "versions are from 0"),
        ('{"type":"record","name":"headwater.events.X","version":true,"fields":[]}', "versions are from 0"),
    ],
)
def test_a_text_that_is_no_schema_of_an_event_is_an_error(text: str, words: str) -> None:
    with pytest.raises(DecodeError, match=words) as caught:
        read_schema(text)
    assert caught.value.problem is Problem.BAD_SCHEMA


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
def test_what_is_wrong_with_bytes_is_reported(data: bytes, problem: Problem, words: str) -> None:
    with pytest.raises(DecodeError, match=words) as caught:
        Codec().decode(data)
    assert caught.value.problem is problem


def test_what_a_field_must_not_be_is_reported_with_its_name() -> None:
    buffer = io.BytesIO(b"\xc3\x01" + current_schema(Heartbeat).fingerprint)
    buffer.seek(10)
    schemaless_writer(buffer, parse_schema(SCHEMA), {**PLAIN, "sequence": -1})
    with pytest.raises(DecodeError, match="sequence: Input should be greater than or equal to 0") as caught:
        Codec().decode(buffer.getvalue())
    assert caught.value.problem is Problem.INVALID


def test_many_faults_are_counted_and_few_are_reported() -> None:
    commit = next(event for event in EXAMPLES if isinstance(event, Committed))
    schema, plain = current_schema(Committed), record_of(commit)
    wrong = {**plain["outputs"][0], "bytes": -1, "rows": -1, "parent": None}
    many = 3_000
    with pytest.raises(DecodeError) as few:
        Codec().decode(written_as(schema, {**plain, "outputs": [wrong] * 2}))
    assert str(few.value).count("outputs.") >= 2
    started = time.thread_time()  # other threads of this process have work of their own
    with pytest.raises(DecodeError, match=r"\d{4} faults, too many to list") as caught:
        Codec().decode(written_as(schema, {**plain, "outputs": [wrong] * many}))
    assert time.thread_time() - started < 10
    assert caught.value.problem is few.value.problem is Problem.INVALID


def record_of(event: Event) -> dict[str, Any]:
    """The plain content of an event, as Avro has it."""
    data = io.BytesIO(Codec().encode(event)[HEADER_BYTES:])
    content = schemaless_reader(data, current_schema(type(event)).parsed, None)
    assert isinstance(content, dict)
    return content


def written_as(schema: WriterSchema, content: dict[str, Any]) -> bytes:
    buffer = io.BytesIO(b"\xc3\x01" + schema.fingerprint)
    buffer.seek(HEADER_BYTES)
    schemaless_writer(buffer, schema.parsed, content)
    return buffer.getvalue()


class FromTheFuture:
    """A kind as a later version of headwater may write it, and today's reader of that."""

    def __init__(self, event: Event) -> None:
        self.event = event
        self.version = event.schema_version + 1
        self.schema: dict[str, Any] = {**json.loads(current_schema(type(event)).text), "version": self.version}
        self.content = {**record_of(event), "schema_version": self.version}

    def read(self) -> Event | None:
        """What is known of it; its bytes are kept in any case."""
        schema = read_schema(json.dumps(self.schema))
        data = written_as(schema, self.content)
        found = taught(schema).decode(data)
        assert isinstance(found, UnknownEvent)
        assert (found.raw, found.kind, found.version) == (data, self.event.kind, self.version)
        return found.known


Change = Callable[[dict[str, Any], str], str]


def new_word(enum: dict[str, Any], _: str) -> str:
    """A word that came later."""
    enum["symbols"] = [*dict.fromkeys([*enum["symbols"], "NEW_WORD"])]
    return "NEW_WORD"


def unknown_word(enum: dict[str, Any], _: str) -> str:
    """The word for those that aren't known."""
    return str(enum["default"])


def with_words(schema: Any, value: Any, change: Change, named: dict[str, Any]) -> Any:
    """The value with another word in place of each."""
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    if isinstance(schema, list):
        branches = [branch for branch in schema if branch != "null"]
        return value if value is None or len(branches) > 1 else with_words(branches[0], value, change, named)
    if not isinstance(schema, dict):
        return value
    named.update({schema["name"]: schema} if "name" in schema else {})
    if schema["type"] == "array":
        return [with_words(schema["items"], item, change, named) for item in value]
    if schema["type"] == "record":
        fields = schema["fields"]
        return {field["name"]: with_words(field["type"], value[field["name"]], change, named) for field in fields}
    return change(schema, value) if schema["type"] == "enum" else value


def declared(schema: Any, named: dict[str, Any]) -> dict[str, Any]:
    """Every type that has a name, in full."""
    if isinstance(schema, list):
        for branch in schema:
            declared(branch, named)
    elif isinstance(schema, dict):
        if "name" in schema:
            named[schema["name"]] = schema
        for part in (*(field["type"] for field in schema.get("fields", ())), schema.get("items"), schema.get("values")):
            declared(part, named)
    return named


def in_full(schema: Any, named: dict[str, Any], known: set[str]) -> Any:
    """Each named type in full where it is met first: it may have stood in a field that is gone."""
    if isinstance(schema, str) and schema in named and schema not in known:
        schema = named[schema]
    if isinstance(schema, list):
        return [in_full(branch, named, known) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    if "name" in schema and schema["name"] in known:
        return schema["name"]
    known.update({schema["name"]} if "name" in schema else ())
    full = {key: in_full(schema[key], named, known) for key in ("items", "values") if key in schema}
    if "fields" in schema:
        full["fields"] = [{**field, "type": in_full(field["type"], named, known)} for field in schema["fields"]]
    return {**schema, **full}


def test_the_examples_have_words_to_change() -> None:
    found: list[str] = []
    for event in EXAMPLES:
        changed = with_words(json.loads(current_schema(type(event)).text), record_of(event), new_word, {})
        found.append(json.dumps(changed, default=str))
    assert sum(text.count("NEW_WORD") for text in found) > 30
    assert sum("NEW_WORD" in text for text in found) > 10


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: f"{event.kind}-{event.sequence}")
class TestAnOldReader:
    """It meets each kind of event as a later version may have made it."""

    def test_takes_words_that_came_later_for_unknown(self, event: Event) -> None:
        future = FromTheFuture(event)
        future.content = with_words(future.schema, future.content, new_word, {})
        known = future.read()
        assert known is not None
        today = json.loads(current_schema(type(event)).text)
        assert record_of(known) == with_words(today, record_of(event), unknown_word, {})

    def test_passes_over_fields_that_were_added(self, event: Event) -> None:
        future = FromTheFuture(event)
        nested = {
            "type": "record",
            "name": "Mood",
            "fields": [{"name": "reasons", "type": {"type": "map", "values": "string"}}],
        }
        new = [{"name": "mood", "type": ["null", nested], "default": None}, {"name": "score", "type": "double"}]
        old = future.schema["fields"]
        future.content |= {"mood": {"reasons": {"weather": "sunny"}}, "score": 1.5}
        for place in (0, len(old) // 2, len(old)):
            future.schema["fields"] = [*old[:place], *new, *old[place:]]
            assert future.read() == event

    @pytest.mark.slow
    def test_takes_the_default_of_a_field_that_was_removed(self, event: Event) -> None:
        named = declared(FromTheFuture(event).schema, {})
        for gone in FromTheFuture(event).schema["fields"]:
            if gone["name"] == "schema_version":
                continue
            future = FromTheFuture(event)
            future.schema["fields"] = [field for field in future.schema["fields"] if field != gone]
            future.schema = in_full(future.schema, named, set())
            del future.content[gone["name"]]
            known = future.read()
            if "default" not in gone:
                assert known is None
            elif known is not None:  # one may be left that doesn't fit what is gone: an index into nothing
                assert record_of(known) == {**record_of(event), gone["name"]: gone["default"]}
            else:
                assert gone["name"] in {"inputs", "outputs"}
