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

from headwater.events.avro import Codec, released, schema_of
from headwater.events.avro.book import current
from headwater.events.avro.schema import version_of
from headwater.events.envelope import Event
from headwater.events.kinds import KINDS, AnyEvent
from headwater.testing.examples import EXAMPLES

HERE = Path(__file__).parent
GOLDEN = sorted(HERE.glob("*.json"))
SCHEMAS = HERE.parent.parent / "events/headwater/events/schemas"
ADAPTER: TypeAdapter[Event] = TypeAdapter(AnyEvent)


def golden(file: Path) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return content


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_old_bytes_mean_what_they_meant(file: Path) -> None:
    for entry in golden(file):
        read = Codec().decode(bytes.fromhex(entry["bytes"]))
        assert isinstance(read, Event)
        told = {**read.model_dump(mode="json"), "schema_version": entry["event"]["schema_version"]}
        assert {key: told[key] for key in entry["event"]} == entry["event"]


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_the_newest_version_is_still_written_to_the_byte(file: Path) -> None:
    kind = KINDS[file.stem.partition(".")[0]]
    if file.stem != f"{kind.__name__}.v{version_of(kind)}":
        return
    for entry in golden(file):
        assert Codec().encode(ADAPTER.validate_python(entry["event"])).hex() == entry["bytes"]


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
