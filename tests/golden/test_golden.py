"""Bytes that were ever written are read for ever, as what they meant; schemas that were released never change."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader
from pydantic import TypeAdapter

from headwater.errors import HeadwaterError
from headwater.events.avro import Codec, released, schema_of
from headwater.events.avro.schema import version_of
from headwater.events.avro.schema_cache import current
from headwater.events.envelope import Event
from headwater.events.kinds import KINDS, AnyEvent
from headwater.testing.examples import EXAMPLES

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
GOLDEN = sorted(HERE.glob("*.json"))
SCHEMAS = HERE.parent.parent / "events/headwater/events/schemas"
ADAPTER: TypeAdapter[Event] = TypeAdapter(AnyEvent)


def golden(file: Path) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    assert content, f"{file.name} is empty: nothing holds what its bytes mean"
    return content


def meant(entry: dict[str, Any]) -> dict[str, Any]:
    """What the bytes mean today, of what the event had when they were written."""
    read = Codec().decode(bytes.fromhex(entry["bytes"]))
    assert isinstance(read, Event)
    values = {**read.model_dump(mode="json"), "schema_version": entry["event"]["schema_version"]}
    return {key: _known_then(values.get(key), then) for key, then in entry["event"].items()}


def _known_then(value: Any, then: Any) -> Any:
    """A value without the fields that a later version added, also within its parts."""
    if isinstance(value, dict) and isinstance(then, dict):
        return {key: _known_then(value.get(key), then[key]) for key in then}
    if isinstance(value, list) and isinstance(then, list) and len(value) == len(then):
        return [_known_then(*pair) for pair in zip(value, then, strict=True)]
    return value


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_old_bytes_mean_what_they_meant(file: Path) -> None:
    for entry in golden(file):
        assert meant(entry) == entry["event"]


@pytest.mark.parametrize("name", [f"{name}.v{version_of(kind)}.json" for name, kind in KINDS.items()])
def test_the_newest_version_is_still_written_to_the_byte(name: str) -> None:
    entries = golden(HERE / name)
    assert entries
    for entry in entries:
        assert Codec().encode(ADAPTER.validate_python(entry["event"])).hex() == entry["bytes"]


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_a_byte_that_changes_is_noticed(file: Path) -> None:
    """Nearly all: there are two ways to write the number of a union's branch, and both mean the same."""
    unnoticed = 0
    for entry in golden(file):
        data = bytes.fromhex(entry["bytes"])
        for place in range(0, len(data), 3):
            changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
            try:
                unnoticed += meant({**entry, "bytes": changed.hex()}) == entry["event"]
            except (AssertionError, HeadwaterError):
                continue
    assert unnoticed <= 5


def test_every_released_version_of_every_kind_has_a_golden_file() -> None:
    assert {file.stem for file in GOLDEN} == {f"{schema.kind}.v{schema.version}" for schema in released()}
    assert {schema.kind for schema in released()} == set(KINDS)


def test_golden_files_are_only_ever_added() -> None:
    """A golden file that changed has another hash than when it was entered here; add a line, never change one."""
    entered = dict(line.split()[::-1] for line in (HERE / "SHA256").read_text().splitlines())
    assert {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in GOLDEN} == entered


def test_released_schemas_are_as_they_were_released() -> None:
    index: dict[str, dict[str, str]] = json.loads((SCHEMAS / "index.json").read_text())
    files = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in SCHEMAS.glob("*.avsc")}
    assert files == {name: entry["sha256"] for name, entry in index.items()}
    assert [s.fingerprint.hex() for s in released()] == [entry["fingerprint"] for entry in index.values()]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_schema_changes_only_with_its_version(kind: type[Event]) -> None:
    """If this fails, the model of the kind changed: raise its schema_version, then `make schemas`."""
    assert json.loads(current(kind.__name__, version_of(kind)).text) == schema_of(kind)


@pytest.mark.parametrize("schema", released(), ids=lambda s: f"{s.kind}.v{s.version}")
def test_every_released_schema_is_read_by_today_and_reads_what_today_writes(schema: Any) -> None:
    """Backward and forward, by Avro's own resolution on real bytes."""
    kind = KINDS[schema.kind]
    today = parse_schema(schema_of(kind))
    for entry in golden(HERE / f"{schema.kind}.v{schema.version}.json"):
        old = bytes.fromhex(entry["bytes"])[10:]
        new = Codec().encode(next(e for e in EXAMPLES if type(e) is kind))[10:]
        assert _resolves(old, schema.parsed, today)
        assert _resolves(new, today, schema.parsed)


def _resolves(data: bytes, writer: Any, reader: Any) -> bool:
    return isinstance(schemaless_reader(io.BytesIO(data), writer, reader), dict)


def test_the_examples_cover_every_kind() -> None:
    assert {type(example) for example in EXAMPLES} == set(KINDS.values())
